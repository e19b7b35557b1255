# SPDX-License-Identifier: Apache-2.0
"""Any profile survives the snapshot and the plain form: load(write(p)) == p."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.profile_values import assert_same_profile

from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.model.profile import (
    EXTERNAL,
    CallFrame,
    Device,
    Evidence,
    KernelProfile,
    Launch,
    LaunchPath,
    PcCounts,
    PcMetric,
    PcSamples,
    Profile,
    RuleResult,
    Sampling,
    SourceText,
)
from gpadvisor.model.stalls import stall_reason
from gpadvisor.store.load import load_bytes
from gpadvisor.store.parts import MAX_EXECUTED, MAX_SAMPLES, digest_of, put_together, take_apart
from gpadvisor.store.possible import possible
from gpadvisor.store.snapshot import snapshot_bytes

U64 = st.integers(0, (1 << 64) - 1)
MAX_ROWS = 5
SMALL = st.integers(0, 1 << 40)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
REAL = st.floats(allow_nan=False)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "str": TEXT,
    "int": U64,
    "float": REAL,
    "bool": st.booleans(),
    "tuple[int, int, int]": st.tuples(SMALL, SMALL, SMALL),
}
LAUNCH_PATHS = st.builds(
    LaunchPath,
    kernel=TEXT,
    binary=st.none() | TEXT,
    launches=st.integers(1, 1 << 40),
    duration_ns=st.none() | st.floats(0, 1e18),
    frames=st.lists(st.deferred(lambda: flat(CallFrame)), max_size=2).map(tuple),
)


@st.composite
def flat(draw: st.DrawFn, kind: type[Any], **fixed: Any) -> Any:
    """A flat value; its annotations say what its fields may be."""
    values = dict(fixed)
    for item in dataclasses.fields(kind):
        if item.name not in values:
            annotation = str(item.type)
            strategy = FIELDS[annotation.removesuffix(" | None")]
            values[item.name] = draw(st.none() | strategy if annotation.endswith(" | None") else strategy)
    return kind(**values)


@st.composite
def rows(
    draw: st.DrawFn, sections: int, **columns: tuple[type[np.generic], st.SearchStrategy[Any]]
) -> dict[str, Any]:
    count = draw(st.integers(0, MAX_ROWS))
    choices = st.sampled_from([*range(sections), EXTERNAL])
    found = {
        "section": np.array(draw(st.lists(choices, min_size=count, max_size=count)), np.uint16),
        "pc": np.array(draw(st.lists(U64, min_size=count, max_size=count)), np.uint64),
    }
    for name, (kind, strategy) in columns.items():
        found[name] = np.array(draw(st.lists(strategy, min_size=count, max_size=count)), kind)
    return found


PROBLEMS = st.lists(st.builds(Problem, st.sampled_from(list(ProblemCode)), TEXT), max_size=2).map(tuple)


@st.composite
def kernels(draw: st.DrawFn, index: int, binaries: list[str]) -> KernelProfile:
    sections = tuple(draw(st.lists(TEXT, max_size=3, unique=True)))
    names = draw(st.lists(TEXT, min_size=1, max_size=4, unique=True))
    reasons = tuple(stall_reason(name) for name in names)
    reason = (np.uint8, st.integers(0, len(reasons) - 1))
    amount = (np.uint64, st.integers(0, MAX_SAMPLES // MAX_ROWS))  # sums beyond MAX_SAMPLES are refused
    samples = draw(rows(len(sections), reason=reason, total=amount, latency=amount))
    samples["total"], samples["latency"] = (
        np.maximum(samples["total"], samples["latency"]),
        np.minimum(samples["total"], samples["latency"]),
    )
    executed = (np.uint64, st.integers(0, MAX_EXECUTED // MAX_ROWS))  # as above
    counts = draw(st.none() | rows(len(sections), warps=executed, threads=executed))
    metrics = {
        name: PcMetric(name=name, **draw(rows(len(sections), value=(np.float64, st.floats()))))
        for name in draw(st.lists(TEXT, max_size=2, unique=True))
    }
    kernel = KernelProfile(
        launch=draw(flat(Launch, index=index)),
        device=draw(flat(Device)),
        evidence=draw(st.sampled_from(list(Evidence))),
        binary=draw(st.none() | st.sampled_from(binaries)) if binaries else None,
        sections=sections,
        reasons=reasons,
        samples=PcSamples(**samples),
        counts=None if counts is None else PcCounts(**counts),
        pc_metrics=metrics,
        metrics=draw(
            st.dictionaries(TEXT, st.floats() | st.integers(-(1 << 70), 1 << 70) | TEXT, max_size=4)
        ),
        sampling=draw(flat(Sampling)),
        rules=tuple(draw(st.lists(flat(RuleResult), max_size=2))),
        call_stack=tuple(draw(st.lists(flat(CallFrame), max_size=2))),
        problems=draw(PROBLEMS),
    )
    return possible(kernel)  # other numbers are named and not used


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    binaries = {
        hashlib.sha256(data).hexdigest(): data for data in draw(st.lists(st.binary(max_size=9), max_size=2))
    }
    launches = draw(st.integers(0, 3))
    return Profile(
        sha256=draw(TEXT),
        collector=draw(TEXT),
        collector_version=draw(st.none() | TEXT),
        command=draw(st.none() | TEXT),
        host=draw(st.none() | TEXT),
        created=draw(st.none() | TEXT),
        kernels=tuple(draw(kernels(index, list(binaries))) for index in range(launches)),
        binaries=binaries,
        disassemblies={key: draw(st.binary(max_size=9)) for key in binaries},
        sources=draw(
            st.dictionaries(
                TEXT,
                st.builds(SourceText, path=TEXT, sha256=st.none() | TEXT, text=st.none() | TEXT),
                max_size=2,
            )
        ),
        problems=draw(PROBLEMS),
        launch_paths=tuple(draw(st.lists(LAUNCH_PATHS, max_size=2))),
    )


@given(profiles())
def test_the_plain_form(profile: Profile) -> None:
    assert_same_profile(put_together(take_apart(profile)), profile)


@settings(max_examples=12)
@given(profiles())
def test_the_snapshot(profile: Profile) -> None:
    data = snapshot_bytes(profile)
    again = load_bytes(data)
    assert_same_profile(again, in_key_order(profile))
    assert snapshot_bytes(again) == snapshot_bytes(in_key_order(profile))


def in_key_order(profile: Profile) -> Profile:
    """Members of the archive are sorted by name, so binaries come back in that order."""
    return dataclasses.replace(
        profile,
        binaries=dict(sorted(profile.binaries.items())),
        disassemblies=dict(sorted(profile.disassemblies.items())),
    )


@given(profiles(), st.data())
def test_the_digest_notices_a_changed_sample(profile: Profile, data: st.DataObject) -> None:
    filled = [index for index, kernel in enumerate(profile.kernels) if len(kernel.samples.pc)]
    if not filled:
        return
    index = data.draw(st.sampled_from(filled))
    samples = profile.kernels[index].samples
    pc = samples.pc.copy()
    pc[-1] ^= np.uint64(16)
    changed = dataclasses.replace(profile.kernels[index], samples=dataclasses.replace(samples, pc=pc))
    kernels_changed = (*profile.kernels[:index], changed, *profile.kernels[index + 1 :])
    other = dataclasses.replace(profile, kernels=kernels_changed)
    assert digest_of(take_apart(other)) != digest_of(take_apart(profile))
