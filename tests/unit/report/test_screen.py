# SPDX-License-Identifier: Apache-2.0
"""The report on one screen: what stands where, what is folded, and that it stays short."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from tests import advice_values as values

from gpadvisor.model.advice import Category, KernelAdvice, LaunchSummary, Rejection, SourceMatch, Suggestion
from gpadvisor.model.ids import Pc
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.model.profile import Evidence, SlowestRank
from gpadvisor.model.sentence import Sentence, line_mark
from gpadvisor.model.timeline import KernelName, KernelTime, RunPart
from gpadvisor.report.caveats import caveats
from gpadvisor.report.entries import families
from gpadvisor.report.markdown import render_markdown
from gpadvisor.report.text import render_text
from gpadvisor.report.words import wrap

LINES = 40


def kernels(number: int, suggestions: int = 4) -> list[KernelAdvice]:
    """As many kernels, each with lines and suggestions of its own."""
    made = []
    for index in range(number):
        at = values.at(10 * index + 1)
        own = tuple(
            replace(one, hotspots=(), scope=replace(one.scope, location=replace(at, line=at.line + line)))
            for line, one in enumerate((*values.kernel().suggestions,)[:suggestions])
        )
        made.append(
            values.kernel(name=f"kernel_{index}(float *)", suggestions=own, groups=(), time_share=1 / number)
        )
    return made


def test_the_verdict_is_on_line_three_and_the_next_step_is_named() -> None:
    lines = render_text(values.measured(), sources=values.SOURCES).splitlines()
    assert lines[2].startswith("gather<1> takes 71 % of the time, limited by latency: waiting for data")
    assert "gpadvisor why profiles/spmv.ncu-rep 1 tells how the first estimate" in lines[-2]


def test_a_suggestion_has_gain_and_cure_then_cause_then_place() -> None:
    text = render_text(values.measured(), sources=values.SOURCES)
    block = text[text.index(" 1  ") : text.index(" 2  ")].splitlines()
    assert block[0].startswith(" 1  1.2x (1.0-1.3)  Put #pragma unroll 4 before the loop")
    rest = block[next(at for at, line in enumerate(block) if line.startswith("    cause")) :]
    assert rest[0] == "    cause  long-latency load used inside the same loop, 55 % of samples (GPA201)"
    assert rest[1] == "    place  load.cuh:4  return in[j];"
    assert rest[2] == "    then   1.14x (0.99-1.22) of the whole run"


@pytest.mark.parametrize(("share", "said"), [(0.9, "; 1.2x (1.0-1.3) of rank 18, the slowest"), (0.714, "")])
def test_what_a_change_is_worth_on_the_slowest_rank(share: float, said: str) -> None:
    first = values.LOOP_UNROLLING
    assert first.program_speedup is not None
    worth = values.estimate(0.99, 1.19, 1.31, 1.40) if said else first.program_speedup
    suggestions = (replace(first, slowest_speedup=worth),)
    slowest = SlowestRank(name="rank 18", time_share=share)
    kernel = values.kernel(suggestions=suggestions, groups=(), slowest=slowest)
    screen = " ".join(render_text(values.advice(kernel)).split())
    assert f"then 1.14x (0.99-1.22) of the whole run{said}" in screen
    assert ("rank 18" in screen) == bool(said)
    whole = "1.14x (0.99-1.22), as this kernel has 71 % of the GPU time"
    text = " ".join(render_markdown(values.advice(kernel)).split())
    assert whole + said in text
    assert ("rank 18" in text) == bool(said)


def test_kernels_that_a_library_brings_along_are_counted() -> None:
    """As those of CUB in a source without samples: what the source itself has is told first, and by name."""
    static = values.kernel(groups=(), time_share=None, duration_ns=None)
    scan, own = (
        replace(static, name=f"void {name}(int)", mangled=name, suggestions=())
        for name in ("cub::CUB_1::detail::ScanKernel<int>", "own")
    )
    lines = render_text(values.advice(scan, own, static), sources=values.SOURCES).splitlines()
    assert lines[2].startswith("gather<1>")
    assert any(line.endswith("own  nothing found, limited by latency") for line in lines)
    assert "and 1 more kernel" in [line.strip() for line in lines]
    assert "Scan" not in "".join(lines)


def test_a_change_is_never_cut() -> None:
    """The conditions stand last; without them the change may give wrong results."""
    cure = (
        "Launch 16 x 4096 blocks of 256 threads instead of 3984 x 4096 of 1. A block's number is its "
        "thread's element today: take it from blockIdx.x * blockDim.x + threadIdx.x instead, and return "
        "where it is beyond the last. The kernel has the block's size as a constant: change it, too. Raise "
        "__launch_bounds__ with it. Without machine code nothing tells whether its threads work together in "
        "a tile of this size."
    )
    one = values.kernel()
    (first, *rest) = one.suggestions
    shown = replace(one, suggestions=(replace(first, cure=cure), *rest))
    for width in (60, 80, 132):
        text = render_text(values.advice(shown), width=width, sources=values.SOURCES)
        assert cure in " ".join(text.split())


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("number", [1, 2, 3, 5, 100])
def test_it_is_one_screen_however_many_kernels_there_are(number: int, width: int) -> None:
    text = render_text(values.advice(*kernels(number)), width=width, sources=values.SOURCES)
    lines = text.splitlines()
    assert len(lines) <= LINES
    heads = [line for line in lines if "    cause" in line]
    assert min(number, 3) <= len(heads) <= 9
    if number > 3:
        assert any("of the time" not in line and "kernel_3" in line for line in lines)
    if number == 100:
        assert "more kernels" in text


def test_three_blocks_of_a_kernel_at_most_the_rest_in_short() -> None:
    text = render_text(values.measured(), sources=values.SOURCES)
    assert text.count("    cause") == 3
    assert " 4  1.04x (1.00-1.09)  Add __launch_bounds__(256, 8): 32 registers per thread" in text
    assert "(gather.cu:4, GPA302)" in " ".join(text.split())
    assert render_text(values.measured(), everything=True).count("    cause") == 4


def test_without_samples_no_code_stands_alone_in_the_headline() -> None:
    shown = replace(values.kernel(), limit="", limited_by="", time_share=None)
    headline = " ".join(render_text(values.advice(shown), sources=values.SOURCES).splitlines()[2:4])
    assert ": without samples nothing is said about time." in headline
    assert "GPA" not in headline
    heavy = replace(shown, time_share=0.45)
    headline = " ".join(render_text(values.advice(heavy), sources=values.SOURCES).splitlines()[2:4])
    assert "gather<1> takes 45 % of the time; without samples nothing is said about why." in headline
    unread = replace(heavy, has_code=False, suggestions=())
    headline = " ".join(render_text(values.advice(unread), sources=values.SOURCES).splitlines()[2:4])
    assert (
        "of the time; no machine code of this kernel could be read, so nothing is said about it" in headline
    )


def test_instantiations_of_a_template_are_one_and_what_they_share_is_told_once() -> None:
    one = values.kernel(time_share=0.5, groups=())
    other = values.kernel(name="void gather<2>(float *)", time_share=0.3, groups=())
    text = render_text(values.advice(one, other))
    assert "gather (2 instantiations) takes 80 % of the time" in text
    assert text.count("Write 0.5f instead of 0.5") == 1
    assert "in gather<1> and 1 more" in text


WRITE = "Write {} otherwise."


@pytest.mark.parametrize(("words", "told"), [(WRITE, 1), ("Write {} otherwise, or not.", 2)])
def test_of_a_template_one_change_on_several_lines_is_told_once_where_it_has_no_figure(
    words: str, told: int
) -> None:
    """As a division whose first line depends on the instantiation."""
    changes = (Sentence(text.format(line_mark(values.at(7 + at)))) for at, text in enumerate((WRITE, words)))
    made = [
        replace(
            values.kernel(name=f"k<{at}>(int)", groups=(), time_share=None),
            suggestions=(
                replace(
                    values.LOOP_UNROLLING,
                    speedup=None,
                    hotspots=(),
                    cure=cure,
                    scope=replace(values.LOOP_UNROLLING.scope, location=values.at(7 + at)),
                ),
            ),
        )
        for at, cure in enumerate(changes)
    ]
    (family,) = families(values.advice(*made))
    assert len(family.entries) == told


def test_a_finding_in_a_header_is_told_once_for_all_kernels() -> None:
    one = values.kernel(groups=(), suggestions=(values.LOOP_UNROLLING,), time_share=0.6)
    other = replace(one, name="other()", time_share=0.4)
    text = render_text(values.advice(one, other))
    assert text.count("Put #pragma unroll 4") == 1
    assert "load.cuh:4  in gather<1> and 1 more" in text


def test_without_lines_findings_of_two_kernels_are_two() -> None:
    spot = replace(values.STORE_HOTSPOT, definition=values.code(Pc(0x200), "STG", None))
    scope = replace(values.KERNEL, location=None)
    bare = replace(values.LOOP_UNROLLING, hotspots=(spot,), scope=scope)
    one = values.kernel(groups=(), suggestions=(bare,), time_share=0.6)
    text = render_text(values.advice(one, replace(one, name="other()", time_share=0.4)))
    assert text.count("Put #pragma unroll 4") == 2
    assert text.count("place  0x0200") == 2


def test_the_place_in_a_package_is_the_users_loop_around_it() -> None:
    """As in a kernel of Julia, whose line tables have no callers."""
    package = values.at(40, "/home/me/.julia/packages/LLVM/9gCXO/src/interop/base.jl")
    spot = replace(values.STORE_HOTSPOT, definition=values.code(0x200, "LDL", package))
    inside = replace(values.LOOP_UNROLLING, hotspots=(spot,))
    text = render_text(values.advice(values.kernel(groups=(), suggestions=(inside,))))
    assert "base.jl" not in text
    assert values.LOOP.location is not None
    assert f"gather.cu:{values.LOOP.location.line}" in text
    called = replace(inside, scope=values.KERNEL)
    assert "base.jl:40" in render_text(values.advice(values.kernel(groups=(), suggestions=(called,))))


def test_one_change_of_many_launches_is_told_once() -> None:
    """As 22 kernels of two blocks, of which each was told the same."""
    launch = replace(
        values.kernel().suggestions[0],
        code="GPA301",
        category=Category.PARALLEL,
        speedup=None,
        hotspots=(),
        cure="Give each launch more work.",
    )
    made = [
        values.kernel(name=f"kernel_{index}(float *)", suggestions=(launch,), groups=(), time_share=1 / 22)
        for index in range(22)
    ]
    advice = replace(values.measured(), kernels=tuple(made))
    assert render_text(advice).count("Give each launch more work") == 1
    page = render_markdown(advice)
    assert page.count(launch.advice) == 1
    assert page.count(f"{launch.name} (GPA301): as for `kernel_0(float *)`.") == 21
    assert "in kernel_0 and 21 more" in render_text(advice)
    said = " ".join(render_text(advice).split())
    assert "95 % kernel_1, kernel_2, kernel_3 and 18 more kernels: the same as 1" in said


def test_a_finding_that_is_referred_to_is_told() -> None:
    """As of the one kernel of many small ones that another was said to be the same as."""

    def found(cure: str) -> Suggestion:
        first = values.kernel().suggestions[0]
        return replace(first, code="GPA301", category=Category.PARALLEL, speedup=None, hotspots=(), cure=cure)

    made = [
        values.kernel(name=name, suggestions=(found(cure),), groups=(), time_share=share)
        for name, cure, share in (
            *((f"large_{index}()", f"Cure {index}.", 0.3) for index in range(3)),
            *((f"small_{index}()", f"Small {min(index, 40)}.", 0.01) for index in range(42)),
        )
    ]
    said = " ".join(render_text(replace(values.measured(), kernels=tuple(made))).split())
    assert "small_41: the same as 44" in said
    assert "small_40 44 " in said


@pytest.mark.parametrize(("share", "told"), [(0.02, True), (0.0002, False)])
def test_a_kernel_that_only_shares_a_change_is_told_where_it_takes_time(share: float, *, told: bool) -> None:
    launch = replace(
        values.kernel().suggestions[0],
        code="GPA301",
        category=Category.PARALLEL,
        speedup=None,
        hotspots=(),
        cure="Give each launch more work.",
    )
    made = [
        values.kernel(name=name, suggestions=(launch,), groups=(), time_share=part)
        for name, part in (("large()", 1 - share), ("small()", share))
    ]
    said = " ".join(render_text(replace(values.measured(), kernels=tuple(made))).split())
    assert ("small: the same as 1" in said) is told
    assert ("1 more kernel, each below 1 % of the time" in said) is not told


def test_what_lowers_trust_is_said_first_in_a_line_each_and_once() -> None:
    problems = tuple(
        Problem(code, "words of the stage that found it")
        for code in (
            ProblemCode.NO_LINE_INFO,
            ProblemCode.FEW_SAMPLES,
            ProblemCode.TRUNCATED_SAMPLES,
            ProblemCode.DEBUG_BUILD,
        )
    )
    one, other, sound = kernels(3, suggestions=1)
    first, second = (replace(kernel, problems=problems) for kernel in (one, other))
    lines = render_text(values.advice(first, second, sound), width=100).splitlines()
    told = [line for line in lines if line.startswith("! ")]
    assert [line.split()[1] for line in told] == ["Debug", "The", "Few", "No"]
    assert lines.index(told[0]) < lines.index(next(line for line in lines if line.startswith(" 1  ")))
    debug = (
        "! Debug build (-G, 2 kernels): compile with -lineinfo and without -G, and profile that. A release"
    )
    assert told[0] == debug


def test_what_holds_of_kernels_that_take_next_to_nothing_is_no_caveat() -> None:
    odd = (Problem(ProblemCode.FEW_SAMPLES, "1 sample"),)
    big, tiny = values.kernel(time_share=0.99), values.kernel(name="t()", time_share=0.004, problems=odd)
    assert "Few samples" not in render_text(values.advice(big, tiny), sources=values.SOURCES)
    assert "Few samples" in render_text(values.advice(tiny), sources=values.SOURCES)


def test_a_simulated_run_says_on_how_many_samples_it_rests_and_that_cache_hits_are_taken_for_granted() -> (
    None
):
    few, many = (
        values.kernel(
            evidence=Evidence.MODELLED, samples=replace(values.kernel().samples, total=total, latency=0)
        )
        for total in (1025, 50216)
    )
    assert caveats(values.advice(few))[0].startswith("Modelled, not measured: 1,025 samples of one SM. ")
    assert "1,025 to 50,216 samples of one SM" in caveats(values.advice(few, many))[0]
    assert not any("Modelled" in line for line in caveats(values.measured()))


@pytest.mark.parametrize(
    "code",
    [
        ProblemCode.FAILED_LAUNCH,
        ProblemCode.INCONSISTENT_REPORT,
        ProblemCode.NO_BINARY,
        ProblemCode.COLLECTION_LIMITED,
    ],
)
def test_what_the_reader_found_wrong_is_said_in_its_own_words(code: ProblemCode) -> None:
    advice = replace(values.measured(), problems=(Problem(code, "1 of 2 launches is odd"),))
    assert "! 1 of 2 launches is odd.\n" in render_text(advice, sources=values.SOURCES)


def test_a_caveat_has_three_lines_and_what_another_one_says_is_not_said_again() -> None:
    reason = "there are no PC samples"
    uncovered = "these samples cover 33.3 % of the GPU time (alpha); beta takes 66.7 %: profile beta"
    problems = (
        Problem(ProblemCode.COLLECTION_LIMITED, reason),
        Problem(ProblemCode.LOWER_EVIDENCE, f"machine code alone: {reason}"),
        Problem(ProblemCode.UNCOVERED_TIME, uncovered),
        Problem(ProblemCode.INCONSISTENT_REPORT, "word " * 60),
    )
    text = render_text(replace(values.measured(), problems=problems), width=80)
    assert text.count(reason) == 1
    assert f"{uncovered[1:]}." in " ".join(text.split())
    long = next(number for number, line in enumerate(text.splitlines()) if line.startswith("! Word"))
    assert text.splitlines()[long + 2].endswith("...")
    assert text.splitlines()[long + 3].startswith("! ")


def test_when_there_is_nothing_to_say_it_is_short() -> None:
    nothing = values.kernel(suggestions=(), notes=(), groups=(), hidden=0)
    lines = render_text(values.advice(nothing, sources=())).splitlines()
    assert len(lines) <= 7
    assert "No change worth its while was found." in " ".join(lines)


def test_rules_that_could_not_look_gave_no_verdict() -> None:
    """As a kernel without samples that was told that no change is worth its while."""
    (kernel,) = values.counted().kernels
    names = ("Data Reuse", "Wider Accesses", "Thread Divergence", "Atomic Aggregation", "Fast Math")
    blind = tuple(Rejection(code="", reason="needs samples", looked=False, name=name) for name in names)
    note = Rejection(code="", reason="needs samples", looked=False)  # has no change to propose
    told = replace(kernel, suggestions=(), rejected=(*blind, note), limited_by="L1")
    text = " ".join(render_text(replace(values.counted(), kernels=(told,))).split())
    said = "data reuse, wider accesses, thread divergence, atomic aggregation and 1 more"
    assert f"No change is known: 5 rules could not look ({said})." in text
    assert "worth its while" not in text
    looked = replace(told, rejected=(note,))
    text = render_text(replace(values.counted(), kernels=(looked,)))
    assert "No change worth its while" in " ".join(text.split())


def test_no_term_of_the_paper_is_on_the_first_screen() -> None:
    text = render_text(values.several(), sources=values.SOURCES)
    for term in ("Eq.", "importance", "latency samples", "blamed", "unattributed", "scope"):
        assert term not in text


def test_no_row_is_a_code_alone_and_what_takes_a_tenth_has_a_row() -> None:
    found = kernels(6)
    text = render_text(values.advice(*found), sources=values.SOURCES)
    for index in range(6):
        row = next(line for line in text.splitlines() if f"kernel_{index}" in line)
        assert "more kernel" not in row
    assert not [line for line in text.splitlines() if re.fullmatch(r".*\b\d+ (\S+x )?GPA\d{3}", line)]


def test_what_takes_the_time_leads_where_next_to_nothing_is_saved_elsewhere() -> None:
    small, large = kernels(2, suggestions=1)
    slight = replace(small.suggestions[0], speedup=values.estimate(1.0, 1.1, 1.2, None))
    unknown = replace(large.suggestions[0], speedup=None, program_speedup=None)
    first = replace(small, suggestions=(slight,), time_share=0.002)
    second = replace(large, suggestions=(unknown,), time_share=0.6)
    found = families(values.advice(first, second))
    assert [one.head.name for one in found] == [second.name, first.name]
    assert found[0].entries[0].number == 1


@pytest.mark.parametrize("estimated", [True, False])
def test_of_kernels_that_were_simulated_the_one_whose_launch_takes_longest_leads(estimated: bool) -> None:
    """As distances of 50 cities, of a microsecond, which stood before tours of a thousand."""
    small, large = kernels(2, suggestions=1)
    much = replace(small.suggestions[0], speedup=values.estimate(1.5, 2.0, 3.0, None))
    speedup = values.estimate(1.1, 1.2, 1.3, None) if estimated else None
    less = replace(large.suggestions[0], speedup=speedup, program_speedup=None)
    first = replace(small, suggestions=(much,), time_share=None, duration_ns=900.0)
    second = replace(large, suggestions=(less,), time_share=None, duration_ns=900_000.0)
    assert [one.head.name for one in families(values.advice(first, second))] == [second.name, first.name]


def test_a_database_of_the_build_that_cannot_be_read_is_said_first() -> None:
    problem = Problem(ProblemCode.COMPILE_DATABASE, "build/compile_commands.json cannot be read (no list)")
    text = render_text(replace(values.advice(*kernels(1)), problems=(problem,)))
    assert "! build/compile_commands.json cannot be read (no list)." in text


def test_what_takes_next_to_nothing_is_counted_only() -> None:
    """As a reduction with 0.1 % of the time whose two findings stood before the kernel with 51 %."""
    small, large = kernels(2, suggestions=1)
    first, second = replace(small, time_share=0.001), replace(large, time_share=0.9, suggestions=())
    text = " ".join(render_text(values.advice(first, second)).split())
    assert small.suggestions[0].title not in text
    assert "smaller finding" in text
    alone = " ".join(render_text(values.advice(first)).split())  # it was asked for
    assert f"{small.suggestions[0].title}" in alone


@pytest.mark.parametrize(("most", "blocks"), [(0.98, 0), (0.3, 1)])
def test_what_saves_the_run_nothing_has_no_block_beside_a_kernel_that_takes_most_of_it(
    most: float, blocks: int
) -> None:
    """As an update of 1.5 % that 1.3x is expected of, beside a kernel of 98 % without a finding."""
    small, large = kernels(2, suggestions=1)
    first, second = replace(small, time_share=0.015), replace(large, time_share=most, suggestions=())
    text = render_text(values.advice(first, second))
    assert text.count("cause  ") == blocks
    assert small.name.partition("(")[0] in text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"duration_ns": 3_100.0}, "It is about as short as a launch: give each launch more work"),
        (
            {"name": "__pgi_uacc_cuda_fill", "duration_ns": 2_592.0},
            "No change is known: it is a kernel of the compiler's runtime",
        ),
        ({"problems": (Problem(ProblemCode.DEBUG_BUILD, ""),)}, "rules look at what a release build leaves"),
    ],
)
def test_nothing_found_is_told_apart(change: dict[str, Any], said: str) -> None:
    """As three kernels of 3 us, and a debug build, both told that no change is worth its while."""
    nothing = replace(values.kernel(suggestions=(), notes=(), groups=(), hidden=0), **change)
    text = " ".join(render_text(values.advice(nothing, sources=())).split())
    assert said in text
    assert "worth its while" not in text


def test_how_long_a_kernel_takes_whose_loops_are_a_guess_is_not_told() -> None:
    guess = Problem(ProblemCode.LOOP_NOT_KNOWN, "how often loops run is a guess (line 9): --loop states it")
    nothing = values.kernel(suggestions=(), notes=(), groups=(), hidden=0)
    short = replace(nothing, duration_ns=3_100.0, problems=(guess,))
    text = " ".join(render_text(values.advice(short, sources=())).split())
    assert "short as a launch" not in text
    assert "! How often loops run is a guess (line 9): --loop states it." in text


def test_another_launch_in_place_of_a_better_one_is_told_with_it() -> None:
    """As 640 blocks of 256 threads beside 2560 of 32, of which a launch has one."""
    (kernel,) = kernels(1, suggestions=2)
    first, second = kernel.suggestions
    told = replace(second, code="GPA301", instead_of=first.code, cure="Launch 2560 blocks instead of 1024.")
    text = " ".join(render_text(values.advice(replace(kernel, suggestions=(first, told)))).split())
    assert "or 1.1x" in text or "or 1.2x" in text
    assert "Launch 2560 blocks instead of 1024. (GPA301) cause" in text
    assert " 2 1" not in text.partition("More:")[0].partition(" 1 1")[2]  # no row of its own


def test_of_missing_sources_only_those_with_time_are_named() -> None:
    """After a file of two empty kernels, named in place of the one that had all the time."""
    missing = [
        SourceMatch(report_path=path, local_path=None, method="unmatched")
        for path in ("/a/e.cu", values.GATHER_FILE)
    ]
    problem = Problem(ProblemCode.SOURCE_UNMATCHED, "no such source here")

    def said(*matches: SourceMatch) -> str:
        return " ".join(caveats(replace(values.measured(), sources=matches, problems=(problem,))))

    assert "Source not here: gather.cu; " in said(*missing)
    assert "Source not here" not in said(missing[0])


def _repeated(number: int, nanoseconds: float, other: float) -> str:
    """The screen's words of a report with a kernel that takes the time, and many launches of another."""
    (kernel,) = kernels(1, suggestions=1)
    assert kernel.launch is not None
    main = replace(kernel.launch, duration_ns=other)
    step = replace(main, kernel="step", demangled="step(float *)", duration_ns=nanoseconds)
    launches = [LaunchSummary(launch=main, analysed=True)]
    launches += [LaunchSummary(launch=step, analysed=False)] * number
    return " ".join(render_text(values.advice(kernel, launches=tuple(launches), sources=())).split())


@pytest.mark.parametrize(
    ("number", "nanoseconds", "other", "told"),
    [
        (200, 2_100.0, 1e6, True),
        (200, 2_100.0, 1e9, False),  # next to nothing of the time
        (200, 21_000.0, 1e6, False),  # longer than a launch
        (4, 2_100.0, 1e3, False),  # no loop
    ],
)
def test_short_launches_in_a_loop_are_told(number: int, nanoseconds: float, other: float, told: bool) -> None:
    words = (
        f"step is launched {number} times for 2.1 us each, less than a launch takes: do several steps in one"
    )
    assert (words in _repeated(number, nanoseconds, other)) is told


@pytest.mark.parametrize(("busy", "told"), [(300_000, True), (990_000, False)])
def test_short_launches_of_a_run_are_told_where_the_gpu_waits(busy: int, told: bool) -> None:
    (kernel,) = kernels(1, suggestions=1)
    name = KernelName(mangled="step", demangled="step(float *)")
    time = KernelTime(
        name=name, shape=None, launches=90, alone_ns=180_000, shared_ns=180_000.0, union_ns=180_000
    )
    part = RunPart(trace="run.sqlite", span_ns=1_000_000, busy_ns=busy, time=time)
    said = caveats(values.advice(replace(kernel, in_run=part)))
    assert any("step is launched 90 times for 2 us each" in text for text in said) is told


def test_a_word_goes_to_the_next_line_whole() -> None:
    """Behind the long name of a kernel, ``registers`` was cut after seven letters."""
    assert wrap("registers spilled", 30, " " * 4, "single_pass (20 instantiations)  ") == [
        "single_pass (20 instantiations)",
        "    registers spilled",
    ]
    assert wrap("registers spilled", 18, " " * 4, "on: ") == ["on: registers", "    spilled"]
