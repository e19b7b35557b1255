# SPDX-License-Identifier: Apache-2.0
"""Options that state a launch for the model."""

from __future__ import annotations

import argparse
from collections.abc import Callable

import pytest

from gpadvisor.cli.options import hit_rates, kernel_arguments, loop, natural, size
from gpadvisor.pipeline.launches import StatedArgument


def test_arguments_are_kinds_with_or_without_a_value() -> None:
    assert kernel_arguments("pointer, int=0x400,long=-3,float=2.5,double") == (
        StatedArgument("pointer"),
        StatedArgument("int", 1024),
        StatedArgument("long", -3),
        StatedArgument("float", 2.5),
        StatedArgument("double"),
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("bool", "'bool' is none of pointer, int, long, float, double"),
        ("", "'' is none of"),
        ("int=", "could not convert"),
        ("int=1.5", "1.5 is no value of kind int"),
        ("int=4294967296", "4294967296 is no value of kind int"),
        ("long=18446744073709551616", "is no value of kind long"),
        ("pointer=-1", "-1 is no value of kind pointer"),
        ("float=1e39", "is no value of kind float"),
        ("int=nan", "nan is no value of kind int"),
        ("double=nan", "nan is no value of kind double"),
    ],
)
def test_what_is_no_argument_is_named(text: str, says: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=says):
        kernel_arguments(text)


def test_hit_rates_are_of_l1_and_of_l2() -> None:
    assert hit_rates("0.25") == (0.25, None)
    assert hit_rates("0,1") == (0.0, 1.0)
    for text in ("", "1.5", "0.5,", "0.1,0.2,0.3", "nan"):
        with pytest.raises(argparse.ArgumentTypeError, match="between 0 and 1"):
            hit_rates(text)


@pytest.mark.parametrize(
    "parse", [size, natural, lambda text: loop(f"3={text}"), lambda text: loop(f"{text}=3")]
)
@pytest.mark.parametrize("text", ["2147483648", "9" * 30, "9" * 5000, "²", "-1", ""])
def test_counts_that_no_launch_can_have(parse: Callable[[str], object], text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        parse(text)
