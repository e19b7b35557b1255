# SPDX-License-Identifier: Apache-2.0
"""Which code sections are disassembled for the kernels that were asked for."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from tests.cubin_parts import Part, Sym, code, elf

from gpadvisor.pipeline import programs
from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.programs import open_cubin
from gpadvisor.sass.listing import SassLine
from gpadvisor.toolchain.disassembly import Disassembly


def test_device_functions_of_separate_compilation_come_along(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Collection[str] | None] = []

    def disassemble(
        cubin: bytes,
        *,
        sections: Collection[str] | None = None,
        timeout_seconds: float = 0.0,
        cancelled: object = None,
    ) -> Disassembly:
        asked.append(sections)
        listing = dict.fromkeys(sections or (), (SassLine(None, "EXIT", ""),))
        return Disassembly(listing=listing, tool="", form="", problems=())

    monkeypatch.setattr(programs, "disassemble", disassemble)
    cubin = elf(
        [Part(f".text.{name}", code(1), flags=6) for name in ("wanted", "other", "called")],
        [Sym("wanted", ".text.wanted"), Sym("other", ".text.other"), Sym("called", ".text.called", other=0)],
    )

    def opened(sections: frozenset[str] | None) -> Collection[str]:
        result = open_cubin(
            cubin, sections, stored=None, timeout_seconds=9, cache=Cache(None), progress=lambda _: None
        )
        return result.listing

    assert set(opened(frozenset({"wanted"}))) == {"wanted", "called"}
    opened(None)
    assert asked == [["called", "wanted"], None]
