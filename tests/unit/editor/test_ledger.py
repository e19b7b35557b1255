# SPDX-License-Identifier: Apache-2.0
"""What was predicted beside what a new profile shows."""

from __future__ import annotations

import pytest
from tests.editor_values import FOUR, ONE, analysis, estimate, kernel

from gpadvisor.editor.show.ledger import entry_words, ledger, summary, verdict
from gpadvisor.model.finding import EditorAnalysis, LedgerEntry
from gpadvisor.model.profile import Evidence

OLD = analysis()


def _new(*, sha256: str = "cd" * 32, **changes: object) -> EditorAnalysis:
    return analysis(kernel(**{"duration_ns": 862.0, "suggestions": (), **changes}), sha256=sha256)


@pytest.mark.parametrize(
    ("duration", "where"),
    [(862.0, "inside the range"), (1000.0, "below the range"), (500.0, "above the range")],
)
def test_predicted_and_achieved(duration: float, where: str) -> None:
    (entry,) = ledger(OLD, _new(duration_ns=duration))
    assert entry.achieved == pytest.approx(1000.0 / duration)
    assert (entry.code, entry.still_found, verdict(entry)) == ("GPA202", False, where)


def test_a_suggestion_that_is_made_again_was_not_followed() -> None:
    (entry,) = ledger(OLD, _new(suggestions=kernel().suggestions))
    assert entry.still_found
    assert summary((entry,)) is None
    assert entry_words(entry) == (
        "GPA202 promised 1.15x (1.12-1.19) for gather<1> and is still found; "
        "the kernel is at 1.16x of its old speed"
    )


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        (_new(sha256=OLD.sha256), "it is the same profile"),
        (_new(evidence=Evidence.MODELLED), "only times of measured runs are compared"),
        (_new(device="H100"), "the devices differ (A100, then H100)"),
    ],
)
def test_times_that_say_nothing_are_not_compared(new: EditorAnalysis, reason: str) -> None:
    (entry,) = ledger(OLD, new)
    assert (entry.achieved, entry.comparable) == (None, reason)
    assert entry_words(entry).endswith(f"not compared: {reason}")
    assert verdict(entry) == "not measured"


def test_a_profile_without_times_says_so() -> None:
    (entry,) = ledger(OLD, _new(duration_ns=None))
    assert (
        entry_words(entry)
        == "GPA202 promised 1.15x (1.12-1.19) for gather<1>; the profiles have no times to compare"
    )


def test_another_instantiation_is_the_same_kernel_where_it_is_the_only_one() -> None:
    (entry,) = ledger(OLD, _new(kernel=FOUR, name="gather<4>"))
    assert (entry.kernel, entry.kernel_name) == (FOUR, "gather<4>")
    two = analysis(kernel(kernel="_Za"), kernel(kernel="_Zb"), sha256="cd" * 32)
    assert ledger(OLD, two) == ()


def test_the_same_instantiation_comes_first() -> None:
    new = analysis(kernel(kernel=FOUR), kernel(suggestions=()), sha256="cd" * 32)
    assert [entry.kernel for entry in ledger(OLD, new)] == [ONE]


def test_summaries_by_rule() -> None:
    def entry(code: str, achieved: float) -> LedgerEntry:
        return LedgerEntry(
            kernel="k",
            kernel_name="k",
            code=code,
            predicted=estimate(),
            achieved=achieved,
            still_found=False,
            comparable=None,
        )

    entries = (entry("GPA202", 1.15), entry("GPA202", 2.0), entry("GPA102", 1.0))
    assert summary(entries, "GPA202") == "1 of 2 GPA202 predictions inside the range"
    assert summary(entries, "GPA102") == "0 of 1 GPA102 prediction inside the range"
    assert summary(entries) == "1 of 3 predictions inside the range"
    assert summary(entries, "GPA301") is None
