# SPDX-License-Identifier: Apache-2.0
"""Lenses, hints and colours: what stands beside the code, for which kernel, and with which switch."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pytest
from tests.editor_values import (
    FILE,
    FOUR,
    HEADER,
    ONE,
    SOURCE,
    analysis,
    estimate,
    file_analysis,
    finding,
    kernel,
    line_data,
    placed,
    stall,
)

from gpadvisor.editor.show.heat import heat, level
from gpadvisor.editor.show.hints import Hint, hints
from gpadvisor.editor.show.lenses import LensAction, lenses
from gpadvisor.editor.show.options import Annotations, Options, Stale
from gpadvisor.model.finding import EditorAnalysis, FileAnalysis, Finding, LaunchView, LineData, Place
from gpadvisor.model.profile import Evidence

EDITED = SOURCE.replace("scaled(in[j])", "twice(in[j])")
CHOSEN_FOUR = Options(chosen=MappingProxyType({"gather": FOUR}))


def _four() -> EditorAnalysis:
    four = kernel(
        kernel=FOUR,
        name="gather<4>",
        time_share=0.09,
        best=None,
        best_code=None,
        best_speedup=None,
        suggestions=(),
    )
    lines = (*file_analysis().lines, line_data(6, 700, kernel=FOUR, share=0.7))
    return analysis(kernel(), four, files=(file_analysis(lines=lines),))


def _lenses(
    value: EditorAnalysis, options: Options | None = None, text: str = SOURCE
) -> list[tuple[int, str]]:
    return [(one.line, one.title) for one in lenses(value, placed(value, text), options or Options())]


def test_a_kernel_has_its_share_its_best_estimate_and_a_place() -> None:
    assert _lenses(analysis()) == [(3, "1.15x (1.12-1.19): Code Reordering, line 7 | 34 % of GPU time")]
    assert _lenses(analysis(), text="// new\n" + SOURCE) == [
        (4, "1.15x (1.12-1.19): Code Reordering, line 8 | 34 % of GPU time")
    ]


def test_a_lens_has_one_number_and_counts_what_is_underlined() -> None:
    more = tuple(finding(line, code=code) for line, code in ((7, "GPA202"), (6, "GPA102"), (9, "GPA201")))
    whole = kernel(together=estimate(1.2, 1.31, 1.4), together_codes=("GPA102", "GPA202"))
    value = analysis(whole, files=(file_analysis(findings=more),))
    lens = "1.15x (1.12-1.19): Code Reordering, line 7 | 34 % of GPU time"
    assert _lenses(value) == [(3, f"{lens} | 2 more")]
    found = lenses(value, placed(value), Options(), underlined={"id-7", "id-9"})
    assert [one.title for one in found] == [f"{lens} | 1 more"]


def test_while_a_profile_is_read_no_lens_says_that_there_is_none() -> None:
    value = analysis(kernel(evidence=Evidence.STATIC, best_speedup=None, best_code=None))
    (one,) = lenses(value, placed(value), Options(), reading="run.ncu-rep")
    assert one.title == "1 suggestion | reading run.ncu-rep"


def test_without_a_profile_the_ways_to_numbers_are_a_click_away() -> None:
    value = analysis(kernel(evidence=Evidence.STATIC, best_speedup=None, best_code=None))
    actions = [one.action for one in lenses(value, placed(value), Options())]
    assert actions[1:] == [LensAction.IMPORT, LensAction.MODEL]


def test_instantiations_share_a_line_and_one_of_them_is_shown() -> None:
    titles = _lenses(_four())
    assert " | gather<1> 34 % of GPU time" in titles[0][1]
    assert titles[1] == (3, "showing gather<1>; also gather<4> 9.0 %")
    assert _lenses(_four(), CHOSEN_FOUR) == [
        (3, "no suggestion | gather<4> 9.0 % of GPU time"),
        (3, "showing gather<4>; also gather<1> 34 %"),
    ]


def test_launches_are_offered_where_there_are_several() -> None:
    one = analysis().launches[0]
    second: LaunchView = replace(one, index=1)
    value = analysis(kernel(launch="launch 1 of 2: 64 x 256 threads"), launches=(one, second))
    found = lenses(value, placed(value), Options())
    assert [(lens.action, lens.title) for lens in found][1:] == [
        (LensAction.PICK_LAUNCH, "launch 1 of 2: 64 x 256 threads")
    ]


def test_no_kernel_has_more_than_three_lenses() -> None:
    value = _four()
    loud = [
        replace(one, together=estimate(), together_codes=("GPA102", "GPA202"), launch="launch 1 of 9")
        for one in value.kernels
    ]
    launches = tuple(replace(value.launches[0], index=index) for index in range(9))
    assert len(_lenses(analysis(*loud, files=value.files, launches=launches))) == 2
    static = [replace(one, evidence=Evidence.STATIC) for one in loud[:1]]
    assert len(_lenses(analysis(*static, files=value.files))) == 3


@pytest.mark.parametrize(
    ("evidence", "words"),
    [(Evidence.STATIC, "code only, no profile"), (Evidence.MODELLED, "modelled, not measured")],
)
def test_what_was_not_measured_says_so(evidence: Evidence, words: str) -> None:
    value = kernel(evidence=evidence, time_share=None, best_speedup=None, best_code=None)
    assert _lenses(analysis(value))[0] == (3, f"1 suggestion | {words}")


def test_a_kernel_without_a_line_has_no_lens() -> None:
    assert _lenses(analysis(kernel(place=None))) == []
    assert _lenses(analysis(kernel(place=Place(file=HEADER, line=1)))) == []


def _hints(value: EditorAnalysis, options: Options | None = None, text: str = SOURCE) -> list[Hint]:
    file = placed(value, text)
    return list(hints(value, file, {FILE: file}, options or Options()))


def _without(*lines: LineData) -> FileAnalysis:
    """The file without findings, whose gains would stand in hints."""
    whole = file_analysis(findings=())
    return replace(whole, lines=lines) if lines else whole


def test_the_line_of_a_cause_has_what_its_cure_gains() -> None:
    hint = next(one for one in _hints(analysis()) if one.line == 7)
    assert hint.text == "1.15x: Code Reordering, causes 2.0 % | 60 % long scoreboard <- line 6"
    cold = file_analysis(lines=(line_data(7, 1, caused=1),))
    assert [one.text for one in _hints(analysis(files=(cold,)))] == ["1.15x: Code Reordering, causes 0.1 %"]


@pytest.mark.parametrize(
    "value",
    [
        finding(leads=False),
        finding(speedup=None),
        finding(whole=estimate(1.0, 1.01, 1.02)),
        finding(suppressed="known"),
    ],
    ids=["does not lead", "no gain", "the run does not notice", "set aside"],
)
def test_no_other_line_promises_a_gain(value: Finding) -> None:
    own = file_analysis(findings=(value,))
    assert not any("Code Reordering" in one.text for one in _hints(analysis(files=(own,))))


def test_hot_lines_have_share_stall_and_cause() -> None:
    found = _hints(analysis(files=(_without(),)))
    assert [(one.line, one.text) for one in found] == [
        (6, "causes 58 %"),
        (7, "60 % long scoreboard <- line 6"),
        (9, "35 % short scoreboard <- lib.cuh:3"),
    ]
    assert found[1].parts[2].place == Place(file=FILE, line=6)
    assert found[1].parts[2].tooltip == "LDG.E loads it here"
    assert found[1].tooltip.splitlines()[0] == (
        "600 of the 1,000 samples of gather<1> are on this line, 300 of them while nothing was issued; "
        "it causes 20."
    )


def test_hints_follow_the_text() -> None:
    found = _hints(analysis(files=(_without(),)), text="// new\n" + SOURCE)
    assert found[1].text == "60 % long scoreboard <- line 7"
    assert found[1].parts[2].place == Place(file=FILE, line=7)
    edited = next(one for one in _hints(analysis(), text=EDITED) if one.line == 7)
    assert edited.faded
    assert edited.text.endswith(" (edited)")
    assert not any(one.line == 7 for one in _hints(analysis(), Options(stale=Stale.HIDE), EDITED))


def test_a_stall_of_the_line_itself_has_no_arrow() -> None:
    own = _without(line_data(7, 400, stall("wait", 400, line=7)))
    assert [one.text for one in _hints(analysis(files=(own,)))] == ["40 % wait"]


def test_issued_samples_are_no_stall() -> None:
    busy = _without(line_data(7, 400, stall("selected", 390), stall("wait", 10)))
    assert [one.text for one in _hints(analysis(files=(busy,)))] == ["40 % wait"]


def test_only_hot_lines_unless_all_are_wanted() -> None:
    assert len(_hints(analysis())) == 3
    assert len(_hints(analysis(), Options(annotations=Annotations.ALL))) == 4


@pytest.mark.parametrize(
    "options", [Options(annotations=Annotations.MINIMAL), Options(annotations=Annotations.OFF)]
)
def test_one_switch_turns_lenses_and_hints_off(options: Options) -> None:
    assert _hints(analysis(), options) == []
    assert _lenses(analysis(), options) == []


def test_each_part_has_its_own_switch() -> None:
    assert _hints(analysis(), Options(inlay_hints=False)) == []
    assert _lenses(analysis(), Options(code_lens=False)) == []


def test_colours_have_levels_by_share() -> None:
    found = heat(analysis(), placed(analysis()), Options())
    assert [(one.line, one.level) for one in found] == [(6, 1), (7, 5), (9, 4)]
    assert [level(share, Options()) for share in (0.009, 0.01, 0.03, 0.1, 0.25, 0.5)] == [0, 1, 2, 3, 4, 5]
    assert level(0.002, Options(heat_share=0.001)) == 1


def test_the_chosen_instantiation_colours_the_lines() -> None:
    value = _four()
    found = heat(value, placed(value), CHOSEN_FOUR)
    assert [(one.line, one.share, one.kernel_name) for one in found] == [(6, 0.7, "gather<4>")]
    assert [one.text for one in _hints(value, CHOSEN_FOUR)] == ["70 % wait"]


def test_the_hottest_instantiation_speaks_where_none_was_chosen() -> None:
    value = _four()
    assert {one.kernel_name for one in heat(value, placed(value), Options())} == {"gather<1>"}
    unknown = Options(chosen=MappingProxyType({"gather": "_Zother"}))
    assert {one.kernel_name for one in heat(value, placed(value), unknown)} == {"gather<1>"}
    assert ONE in {one.kernel for one in value.kernels}


def test_edited_lines_that_fell_together_add_up() -> None:
    two = file_analysis(lines=(line_data(6, 100), line_data(7, 200)), findings=())
    text = SOURCE.replace(
        "    int j = idx[k];\n    acc += scaled(in[j]);\n", "    acc += scaled(in[idx[k]]);\n"
    )
    value = analysis(files=(two,))
    file = placed(value, text)
    assert file.samples == 300
    assert (
        sum(one.samples for one in heat(value, file, Options()))
        + sum(one.data.samples for one in file.deleted_lines)
        == 300
    )
