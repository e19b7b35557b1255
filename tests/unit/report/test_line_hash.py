# SPDX-License-Identifier: Apache-2.0
"""Hashes of lines against those that GitHub's upload action publishes for its own."""

from __future__ import annotations

import pytest

from gpadvisor.report.line_hash import line_hashes

END = "c129715d7a2bc9a3:1"
GREETINGS = (
    "e9496ae3ebfced30:1 fb7c023a8b9ccb3f:1 ce8ba1a563dcdaca:1 e20e36e16fcb0cc8:1 b3edc88f2938467e:1 "
    f"c8e28b0b4002a3a0:1 {END}"
)


COUNTS = (
    "e54938cc54b302f1:1 bb609acbe9138d60:1 1131fd5871777f34:1 5c482a0f8b35ea28:1 54517377da7028d2:1 "
    "2c644846cb18d53e:1 f1b89f20de0d133:1"
)


@pytest.mark.parametrize(
    ("text", "hashes"),
    [
        ("", END),
        (" a\nb\n  \t\tc\n d", "271789c17abda88f:1 54703d4cd895b18:1 180aee12dab6264:1 a23a3dc5e078b07b:1"),
        (" hello; \t\nworld!!!\n\n\n  \t\tGreetings\n End\n", GREETINGS),
        (" hello; \t\nworld!!!\r\n\n\r  \t\tGreetings\r End\r\n", GREETINGS),
        (
            "x = 2\nx = 1\nprint(x)\nx = 3\nprint(x)\nx = 4\nprint(x)\n",
            f"{COUNTS} {END}",
        ),
    ],
)
def test_hashes(text: str, hashes: str) -> None:
    assert line_hashes(text) == hashes.split()


def test_equal_lines_are_numbered() -> None:
    found = line_hashes("Lorem ipsum dolor sit amet.\n" * 10)
    assert found[:6] == [f"a7f2ff13bc495cf2:{number}" for number in range(1, 7)]
    assert found[6:8] == ["a7f2ff1481e87703:1", "a9cf91f7bbf1862b:1"]


def test_letters_outside_of_the_first_plane_are_two_units() -> None:
    assert line_hashes("\U0001f600") != line_hashes("\uf600")
    assert len(line_hashes("\U0001f600\n\ud800")) == 2
