# SPDX-License-Identifier: Apache-2.0
"""Which places of a suggestion are shown."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from tests.optimizer_values import Row, context_of, listing

from gpadvisor.advice.hotspots import hotspots
from gpadvisor.evidence.queries import regions
from gpadvisor.model.advice import Match
from gpadvisor.rules import fast_math


def test_a_line_of_the_source_is_among_them_where_samples_gather_in_a_routine() -> None:
    text = (
        ".function kernel\ncall| CALL.REL.NOINC __cuda_sm20_div_rn_f64_full // 7\nEXIT\n"
        ".function __cuda_sm20_div_rn_f64_full math_helper\n"
        "a| DFMA R2, R4, R6, R2\nb| DFMA R2, R4, R6, R2\nRET.REL.NODEC R20 0x0"
    )
    rows = [Row("wait", "a", 500, 400), Row("wait", "b", 400, 300), Row("branch_resolving", "call", 10, 9)]
    context = context_of(listing(text), rows)
    found = fast_math.OPTIMIZER.match(context)
    assert isinstance(found, Match)
    spots = hotspots(context, found, fast_math.OPTIMIZER.category, 2)
    assert [spot.samples for spot in spots] == [0, 500]
    assert spots[0].use is not None
    assert spots[0].use.location is not None
    assert spots[0].use.location.line == 7


def test_where_no_line_waits_those_that_call_the_routine_are_shown_once_each() -> None:
    text = (
        ".function kernel\none| CALL.REL.NOINC __cuda_sm20_div_rn_f64_full // 7\n"
        "again| CALL.REL.NOINC __cuda_sm20_div_rn_f64_full // 7\n"
        "two| CALL.REL.NOINC __cuda_sm20_div_rn_f64_full // 9\nEXIT\n"
        ".function __cuda_sm20_div_rn_f64_full math_helper\n"
        "a| DFMA R2, R4, R6, R2\nb| DFMA R2, R4, R6, R2\nRET.REL.NODEC R20 0x0"
    )
    context = context_of(listing(text), [Row("wait", "a", 500, 400), Row("wait", "b", 400, 300)])
    found = fast_math.OPTIMIZER.match(context)
    assert isinstance(found, Match)
    spots = hotspots(context, replace(found, place=None), fast_math.OPTIMIZER.category)
    uses = [spot.use for spot in spots]
    places = [use.location.line if use is not None and use.location is not None else None for use in uses]
    assert places == [7, 9, None, None]
    assert [spot.samples for spot in spots] == [0, 0, 500, 400]


def test_each_line_is_shown_before_a_second_place_of_one() -> None:
    text = "a| MUFU.EX2 R2, R4 // 7\nb| MUFU.EX2 R3, R5 // 7\nc| MUFU.EX2 R6, R8 // 9\nEXIT"
    rows = [Row("wait", "a", 500, 400), Row("wait", "b", 400, 300), Row("wait", "c", 10, 9)]
    context = context_of(listing(text), rows)
    assert context.blame is not None
    found = Match(
        title="", advice="", regions=regions(context.blame, context.program, context.kernel, np.arange(3))
    )
    shown = [
        [spot.samples for spot in hotspots(context, found, fast_math.OPTIMIZER.category, limit)]
        for limit in (1, 2, 3)
    ]
    assert shown == [[500], [500, 10], [500, 400, 10]]
