# SPDX-License-Identifier: Apache-2.0
"""Findings and samples after any series of edits with a known outcome: nothing is lost or misplaced."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st
from tests.editor_values import FILE, file_analysis, finding, line_data

from gpadvisor.editor.place.placing import PlacedFile, place
from gpadvisor.model.finding import FileAnalysis, Freshness
from gpadvisor.source.line_map import line_keys

_COMMON = ("}", "", "  __syncthreads();", "    i++;", "  {", "  sum += x;")


@dataclass(frozen=True)
class Line:
    """A line of today's text and the line of the baseline that it was."""

    text: str
    origin: int | None
    edited: bool = False


def _baseline(kinds: list[int]) -> list[str]:
    """Lines of which those of kind 0 are like no other."""
    return [
        f"  float v{at} = in[{at} * stride];" if kind == 0 else _COMMON[kind % len(_COMMON)]
        for at, kind in enumerate(kinds)
    ]


def _insert(lines: list[Line], at: int, size: int, number: int) -> None:
    lines[at:at] = [Line(f"  new_line_{number}_{step}(out);", None) for step in range(size)]


def _insert_common(lines: list[Line], at: int, size: int, number: int) -> None:
    lines[at:at] = [Line(_COMMON[(number + step) % len(_COMMON)], None) for step in range(size)]


def _delete(lines: list[Line], at: int, size: int, number: int) -> None:
    del lines[at : at + size]


def _edit(lines: list[Line], at: int, size: int, number: int) -> None:
    for step, line in enumerate(lines[at : at + size], at):
        lines[step] = replace(line, text=f"{line.text} changed_{number}_{step}();", edited=True)


def _reformat(lines: list[Line], at: int, size: int, number: int) -> None:
    for step, line in enumerate(lines[at : at + size], at):
        text = (
            "\t" * (number % 3)
            + line.text.strip().replace(" = ", "=").replace("(", " ( ")
            + " " * (number % 2)
        )
        lines[step] = replace(line, text=text)


def _remark(lines: list[Line], at: int, size: int, number: int) -> None:
    for step, line in enumerate(lines[at : at + size], at):
        if line.text.strip():
            lines[step] = replace(line, text=f"{line.text} // said {number}")


def _move(lines: list[Line], at: int, size: int, number: int) -> None:
    block = lines[at : at + size]
    del lines[at : at + size]
    to = number % (len(lines) + 1)
    lines[to:to] = block


_EDITS = (_insert, _insert_common, _delete, _edit, _reformat, _move, _remark)

scripts = st.lists(
    st.tuples(st.integers(0, len(_EDITS) - 1), st.integers(0, 80), st.integers(1, 8), st.integers(0, 1000)),
    max_size=8,
)
baselines = st.lists(st.sampled_from((0, 0, 0, 1, 2, 3, 4, 5)), min_size=1, max_size=60)


def _edited(before: list[str], script: list[tuple[int, int, int, int]]) -> list[Line]:
    lines = [Line(text, at) for at, text in enumerate(before)]
    for number, (kind, at, size, value) in enumerate(script):
        _EDITS[kind](lines, at % (len(lines) + 1), size, value * 10 + number)
    return lines


def _everything(before: list[str]) -> FileAnalysis:
    """A finding and samples on each line."""
    numbers = range(1, len(before) + 1)
    return file_analysis(
        baseline="\n".join(before),
        findings=tuple(finding(line) for line in numbers),
        lines=tuple(line_data(line, 10 + line) for line in numbers),
    )


def _by_origin(found: PlacedFile) -> dict[int, tuple[int, Freshness]]:
    return {
        one.finding.line - 1: (one.line - 1, one.freshness)
        for one in (*found.findings, *found.deleted_findings)
    }


@given(baselines, scripts)
def test_every_finding_reaches_its_line_or_is_edited(
    kinds: list[int], script: list[tuple[int, int, int, int]]
) -> None:
    before = _baseline(kinds)
    lines = _edited(before, script)
    text = "\n".join(line.text for line in lines)
    found = _by_origin(place(_everything(before), text))
    keys_before, keys_now = line_keys("\n".join(before), comment="//"), line_keys(text, comment="//")
    where = {line.origin: at for at, line in enumerate(lines) if line.origin is not None and not line.edited}
    for origin, (line, freshness) in found.items():
        key = keys_before[origin]
        left = keys_now.count(key)
        if not left:
            assert freshness is Freshness.EDITED
        elif left == 1 == keys_before.count(key) and origin in where and len(key) >= 8:
            assert (line, freshness) == (where[origin], Freshness.FRESH)
        else:  # a line that others equal: any equal line is as good
            assert freshness is Freshness.EDITED or keys_now[line] == key
        assert 0 <= line < max(len(lines), 1)


@given(baselines, scripts)
def test_findings_and_samples_are_conserved(
    kinds: list[int], script: list[tuple[int, int, int, int]]
) -> None:
    before = _baseline(kinds)
    file = _everything(before)
    found = place(file, "\n".join(line.text for line in _edited(before, script)))
    findings = [*found.findings, *found.deleted_findings]
    assert sorted(one.finding.id for one in findings) == sorted(one.id for one in file.findings)
    assert found.samples == sum(line.samples for line in file.lines)
    fresh = sum(one.data.samples for one in found.lines if one.freshness is Freshness.FRESH)
    assert fresh + found.stale_samples == found.samples
    edited = sum(1 for one in found.findings if one.freshness is Freshness.EDITED)
    unchanged = sum(1 for one in found.findings if one.freshness is Freshness.FRESH)
    assert unchanged + edited + len(found.deleted_findings) == len(file.findings)
    assert found.stale_findings == edited + len(found.deleted_findings)


@given(baselines, scripts)
def test_two_lines_of_the_baseline_are_never_one_fresh_line(
    kinds: list[int], script: list[tuple[int, int, int, int]]
) -> None:
    before = _baseline(kinds)
    found = place(_everything(before), "\n".join(line.text for line in _edited(before, script)))
    fresh = [one.line for one in found.findings if one.freshness is Freshness.FRESH]
    assert len(fresh) == len(set(fresh))


@given(baselines, st.lists(st.tuples(st.sampled_from((0, 1, 2, 3)), st.integers(0, 80), st.integers(1, 8),
                                     st.integers(0, 1000)), max_size=8))  # fmt: skip
def test_without_moves_the_order_is_kept(kinds: list[int], script: list[tuple[int, int, int, int]]) -> None:
    before = _baseline(kinds)
    text = "\n".join(line.text for line in _edited(before, script))
    found = place(_everything(before), text)
    kept = [
        (one.finding.line, one.line)
        for one in found.findings
        if one.freshness is Freshness.FRESH and not one.moved
    ]
    assert kept == sorted(kept)
    assert [old for old, _ in kept] == sorted(old for old, _ in kept)
    # An edited line lies between the unchanged lines around it.
    for one in found.findings:
        if one.freshness is Freshness.EDITED:
            above = [new for old, new in kept if old < one.finding.line]
            below = [new for old, new in kept if old > one.finding.line]
            assert all(new < one.line for new in above[-1:])
            assert all(one.line < new for new in below[:1])


@given(
    st.text(alphabet="ab{}\n\r\t \x0c\x85\u2028/", max_size=200),
    st.text(alphabet="ab{}\n\r\t \x0c/", max_size=200),
)
def test_any_two_texts_can_be_compared(before: str, after: str) -> None:
    lines = len(line_keys(before))
    file = file_analysis(
        baseline=before, findings=tuple(finding(line) for line in range(1, lines + 1)), lines=()
    )
    found = place(file, after)
    assert len(found.findings) + len(found.deleted_findings) == lines
    assert all(1 <= one.line <= len(line_keys(after)) for one in found.findings)
    assert found.path == FILE
