# SPDX-License-Identifier: Apache-2.0
"""Collections of the cupti collector: from records to a profile, and what is said of damage."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests import collection_writer as made
from tests.tiny_cubin import tiny_cubin

from gpadvisor.errors import ProfileFormatError
from gpadvisor.model.problem import ProblemCode
from gpadvisor.model.profile import CONFIGURATION_SHARE, CONFIGURATIONS, Evidence, Profile
from gpadvisor.store.collection import executions, samples
from gpadvisor.store.collection.files import live_counters
from gpadvisor.store.collection.layout import UNIT_BYTES, RecordKind, Stage
from gpadvisor.store.collection.picks import Picks, write_picks
from gpadvisor.store.collection.summary import summarize_collection
from gpadvisor.store.load import load_profile
from gpadvisor.store.paths import is_collection

IMAGE = tiny_cubin({"add": [("add_helper", 64)], "mul": [], "shared_device": []})
REASONS = [
    (1, "smsp__pcsamp_warps_issue_stalled_long_scoreboard"),
    (2, "smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued"),
    (3, "smsp__pcsamp_warps_issue_stalled_selected"),
]
NAMES = [made.name(text) for text in ("add", "mul", "add_helper", "shared_device", "nobody")]
FACTS = [made.device(), made.context(), made.reasons(REASONS), made.module(IMAGE), *NAMES]


def _profile(tmp_path: Path, *records: bytes, mode: int = 1, finished: bool = True) -> Profile:
    body = made.segment([made.process(mode=mode), *FACTS, *records])
    return load_profile(made.write(tmp_path / "c", made.header(finished=finished) + body, images=[IMAGE]))


def _codes(profile: Profile) -> set[ProblemCode]:
    return {problem.code for problem in profile.problems}


def test_samples_and_latency_samples(tmp_path: Path) -> None:
    profile = _profile(
        tmp_path,
        made.kernel("add", 5),
        made.samples([(77, 32, "add", 0, 1, 9), (77, 32, "add", 0, 2, 4)]),
        made.samples([(77, 32, "add", 0, 1, 1), (77, 48, "add", 0, 3, 2)]),
    )
    (kernel,) = profile.kernels
    assert kernel.evidence is Evidence.MEASURED
    assert [reason.name for reason in kernel.reasons] == ["long_scoreboard", "selected"]
    columns = (kernel.samples.pc, kernel.samples.reason, kernel.samples.total, kernel.samples.latency)
    assert [list(map(int, row)) for row in zip(*columns, strict=True)] == [[32, 0, 10, 4], [48, 1, 2, 0]]
    assert kernel.sampling.interval_cycles == 2048
    assert (profile.command, profile.host, profile.collector_version) == ("./app", "box", "CUPTI 13.5.0")
    assert profile.created == "2023-11-14T22:13:20+00:00"


def test_a_helper_lies_in_the_section_of_its_kernel(tmp_path: Path) -> None:
    profile = _profile(
        tmp_path,
        made.kernel("add", 5),
        made.samples([(77, 16, "add_helper", 0, 1, 3), (77, 0, "add", 0, 1, 1)]),
    )
    (kernel,) = profile.kernels
    assert kernel.sections == ("add",)
    assert [int(pc) for pc in kernel.samples.pc] == [0, 80]


def test_a_function_that_two_kernels_may_call_is_left_out_and_said(tmp_path: Path) -> None:
    rows = made.samples([(77, 16, "shared_device", 0, 1, 3)])
    one = (
        _profile(tmp_path / "one", made.kernel("add", 5), rows)
        if (tmp_path / "one").mkdir() is None
        else None
    )
    assert one is not None
    assert one.kernels[0].sections == ("add", "shared_device")
    (tmp_path / "two").mkdir()
    two = _profile(tmp_path / "two", made.kernel("add", 5), made.kernel("mul", 6), rows)
    assert [kernel.total_samples for kernel in two.kernels] == [0, 0]
    assert ProblemCode.EXTERNAL_SAMPLES in _codes(two)


def test_serialized_samples_go_to_their_launch(tmp_path: Path) -> None:
    profile = _profile(
        tmp_path,
        made.kernel("add", 5),
        made.kernel("add", 6, grid=(20, 1, 1)),
        made.samples([(77, 0, "add", 6, 1, 3), (77, 0, "shared_device", 5, 1, 8)]),
        mode=2,
    )
    assert [kernel.total_samples for kernel in profile.kernels] == [8, 3]
    assert [kernel.launch.grid[0] for kernel in profile.kernels] == [10, 20]


def test_a_runtime_calls_correlation_finds_the_launch(tmp_path: Path) -> None:
    profile = _profile(
        tmp_path,
        made.launch("add", 6, outer=5),
        made.kernel("add", 5),
        made.samples([(77, 0, "add", 6, 1, 3)]),
        mode=2,
    )
    assert [kernel.total_samples for kernel in profile.kernels] == [3]


def test_the_nodes_of_a_graph_share_a_correlation_and_not_their_samples(tmp_path: Path) -> None:
    profile = _profile(
        tmp_path,
        *(made.kernel(name, 5, graph=1) for name in ("add", "mul", "add")),
        made.samples([(77, 0, "add", 5, 1, 3), (77, 0, "mul", 5, 1, 4), (77, 0, "shared_device", 5, 1, 9)]),
        mode=2,
    )
    assert [(kernel.launch.kernel, kernel.total_samples) for kernel in profile.kernels] == [
        ("add", 3),
        ("mul", 4),
    ]
    assert profile.kernels[0].metrics["gpadvisor__launches"] == 2
    assert ProblemCode.EXTERNAL_SAMPLES in _codes(profile)


@pytest.mark.parametrize(("finished", "launches"), [(True, 2), (False, 3)])
def test_a_launch_captured_into_a_graph_is_no_execution(
    tmp_path: Path, finished: bool, launches: int
) -> None:
    profile = _profile(
        tmp_path,
        made.launch("add", 1, time=10),
        made.launch("add", 2, time=20),  # captured: later ones are reported, this one is not
        made.launch("add", 3, time=30),
        made.launch("add", 4, time=40),  # of a process that was killed: not reported yet
        made.kernel("add", 1),
        made.kernel("add", 3),
        finished=finished,
    )
    (kernel,) = profile.kernels
    assert kernel.metrics["gpadvisor__launches"] == launches


def test_mixed_configurations_weigh_by_time(tmp_path: Path) -> None:
    profile = _profile(
        tmp_path,
        *(made.kernel("add", number) for number in range(3)),
        made.kernel("add", 9, grid=(99, 1, 1), nanoseconds=9000),
        made.samples([(77, 0, "add", 0, 1, 3)]),
    )
    (kernel,) = profile.kernels
    assert kernel.launch.grid == (99, 1, 1)
    assert kernel.launch.duration_ns == 12_000
    assert kernel.metrics[CONFIGURATIONS] == 2
    assert kernel.metrics[CONFIGURATION_SHARE] == pytest.approx(0.75)


def test_more_latency_samples_than_samples_are_cut_and_said(tmp_path: Path) -> None:
    profile = _profile(
        tmp_path,
        made.kernel("add", 5),
        made.samples([(77, 0, "add", 0, 1, 3), (77, 0, "add", 0, 2, 5), (77, 0, "add", 0, 44, 1)]),
    )
    (kernel,) = profile.kernels
    assert (kernel.total_samples, kernel.latency_samples) == (3, 3)
    (problem,) = kernel.problems
    assert "1 samples" in problem.message
    assert "2 latency samples" in problem.message


@pytest.mark.parametrize("counts", [{"dropped": 1 << 63}, {"non_user": (1 << 64) - 1}])
def test_more_samples_than_a_run_can_have_are_refused(tmp_path: Path, counts: dict[str, int]) -> None:
    """They would not fit a snapshot either."""
    with pytest.raises(ProfileFormatError, match="more samples than any run has"):
        _profile(tmp_path, made.kernel("add", 5), made.samples([(77, 0, "add", 0, 1, 3)], **counts))


def test_rows_with_more_samples_than_a_run_can_have_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "MAX_SAMPLES", 8)
    with pytest.raises(ProfileFormatError, match="more samples than any run has"):
        _profile(tmp_path, made.kernel("add", 5), made.samples([(77, 0, "add", 0, 1, 9)]))


def test_samples_without_a_launch_and_of_the_driver(tmp_path: Path) -> None:
    profile = _profile(
        tmp_path, made.kernel("add", 5), made.samples([(1, 0, "nobody", 0, 1, 3)], non_user=12, dropped=4)
    )
    messages = " ".join(problem.message for problem in profile.problems)
    assert "3 samples belong to no launch" in messages
    assert "12 samples lie in kernels of the driver" in messages
    assert profile.kernels[0].sampling.dropped_samples == 4


@pytest.mark.parametrize(
    ("stage", "code", "words"),
    [
        (Stage.SAMPLING, 35, "NVreg_RestrictProfilingToAdminUsers=0"),
        (Stage.SAMPLING, 40, "virtual GPU"),
        (Stage.SAMPLING, 43, "MIG"),
        (Stage.SAMPLING, 1234, "CUPTI answers CUPTI_ERROR (1234)"),
        (Stage.SUBSCRIBE, 39, "another profiler"),
        (Stage.SUBSCRIBE, 15, "driver's CUDA release"),
        (Stage.BUFFER, 8, "--period"),
        (Stage.DROPPED, 17, "17 or more"),
        (99, 1, "not known here"),
    ],
)
def test_notes_are_sentences_with_a_next_step(tmp_path: Path, stage: int, code: int, words: str) -> None:
    profile = _profile(tmp_path, made.kernel("add", 5), made.note(stage, code))
    assert any(words in problem.message for problem in profile.problems)
    assert any(words in text for text in summarize_collection(tmp_path / "c").notes)


def test_a_file_cut_at_its_end_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    kernels = [made.kernel("add", number) for number in range(2000)]
    data = made.header() + made.segment([made.process(), *FACTS]) + made.segment(kernels)
    folder = made.write(tmp_path / "c", data[: -3 * UNIT_BYTES // 2], images=[IMAGE])
    profile = load_profile(folder)
    assert 0 < profile.kernels[0].metrics["gpadvisor__launches"] < 2000  # type: ignore[operator]  # a number
    assert ProblemCode.UNFINISHED_COLLECTION in _codes(profile)


def test_damage_inside_costs_the_rest_of_one_segment(tmp_path: Path) -> None:
    first, second = (
        made.segment([made.kernel("add", 1), made.kernel("add", 2)]),
        made.segment([made.kernel("mul", 3)]),
    )
    damaged = bytearray(first)
    damaged[200] ^= 0xFF
    data = made.header() + made.segment([made.process(), *FACTS]) + bytes(damaged) + second
    profile = load_profile(made.write(tmp_path / "c", data, images=[IMAGE]))
    assert [(k.launch.kernel, k.metrics["gpadvisor__launches"]) for k in profile.kernels] == [
        ("add", 1),
        ("mul", 1),
    ]
    assert ProblemCode.UNFINISHED_COLLECTION in _codes(profile)


def test_records_of_an_unknown_kind_are_told(tmp_path: Path) -> None:
    profile = _profile(tmp_path, made.kernel("add", 5), made.record(200, b"later"))
    assert any("1 records of a kind that is not known" in problem.message for problem in profile.problems)


def test_a_segment_claimed_and_never_begun_is_no_damage(tmp_path: Path) -> None:
    data = made.header() + bytes(UNIT_BYTES) + made.segment([made.process(), *FACTS, made.kernel("add", 1)])
    assert load_profile(made.write(tmp_path / "c", data, images=[IMAGE])).problems == ()


def test_an_image_that_is_not_what_its_name_says_is_not_taken(tmp_path: Path) -> None:
    folder = made.write(
        tmp_path / "c",
        made.header() + made.segment([made.process(), *FACTS, made.kernel("add", 1)]),
        images=[IMAGE],
    )
    (stored,) = (folder / "cubins").iterdir()
    stored.write_bytes(IMAGE + b"x")
    profile = load_profile(folder)
    assert profile.kernels[0].binary is None
    assert ProblemCode.NO_BINARY in {problem.code for problem in profile.kernels[0].problems}


def test_links_and_pipes_in_a_collection_are_not_followed(tmp_path: Path) -> None:
    folder = made.write(
        tmp_path / "c", made.header() + made.segment([made.process(), *FACTS, made.kernel("add", 1)])
    )
    (tmp_path / "secret.cubin").write_bytes(IMAGE)
    (folder / "cubins").mkdir()
    (folder / "cubins" / f"{'0' * 64}.cubin").symlink_to(tmp_path / "secret.cubin")
    os.mkfifo(folder / "1-2.gpacupti")
    (folder / "3-4.gpacupti").symlink_to(tmp_path / "secret.cubin")
    assert load_profile(folder).binaries == {}


def test_what_is_no_collection(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert not is_collection(tmp_path / "empty")
    (tmp_path / "hollow" / "cubins").mkdir(parents=True)
    with pytest.raises(ProfileFormatError, match="did not use CUDA"):
        load_profile(tmp_path / "hollow")
    for bad, words in (
        (made.header(version=2), "version 2"),
        (made.header(order=0x04030201), "byte order"),
        (b"GPACUPTI", "cut short"),
    ):
        folder = made.write(tmp_path / "c", bad)
        with pytest.raises(ProfileFormatError, match=words):
            load_profile(folder)
    short = made.header() + made.segment([made.record(RecordKind.KERNEL, b"1234")])
    with pytest.raises(ProfileFormatError, match="holds too little"):
        load_profile(made.write(tmp_path / "c", short))


def test_one_file_of_a_collection_can_be_named(tmp_path: Path) -> None:
    body = made.segment([made.process(), *FACTS, made.kernel("add", 1)])
    folder = made.write(tmp_path / "c", made.header() + body, images=[IMAGE])
    (file,) = folder.glob("*.gpacupti")
    assert load_profile(file).kernels[0].binary is not None


def test_counters_of_a_growing_collection(tmp_path: Path) -> None:
    folder = made.write(tmp_path / "c", made.header(lost=3))
    (folder / "9-9.gpacupti").write_bytes(b"")
    live = live_counters(folder)
    assert (live.processes, live.launches, live.samples, live.lost_records) == (1, 5, 50, 3)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"m": []}',
        '{"m": {"x": ["f", "g", 1]}}',
        '{"m": {"1": ["f"]}}',
        "[" * 100_000,
        '{"m": {"1": 5}}',
    ],
)
def test_names_of_frames_that_are_damaged_are_done_without(tmp_path: Path, text: str) -> None:
    body = made.segment([made.process(), *FACTS, made.kernel("add", 1)])
    folder = made.write(tmp_path / "c", made.header() + body, images=[IMAGE])
    (folder / "host-lines.json").write_text(text)
    assert load_profile(folder).problems == ()


def test_launches_beyond_the_limit_are_added_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpadvisor.store.collection.executions.MAX_LAUNCHES", 3)
    rows = [(77, 0, "add", number, 1, 2) for number in range(4)]
    profile = _profile(tmp_path, *(made.kernel("add", n) for n in range(4)), made.samples(rows), mode=2)
    (kernel,) = profile.kernels
    assert kernel.total_samples == 8
    assert kernel.metrics["gpadvisor__launches"] == 4


def _picked(folder: Path, picks: Picks, *records: bytes, mode: int = 1) -> Profile:
    _profile(folder, *records, mode=mode)
    write_picks(folder / "c", picks)
    return load_profile(folder / "c")


def test_kernels_that_nobody_asked_for_keep_their_time_alone(tmp_path: Path) -> None:
    records = [
        made.kernel("add", 1, nanoseconds=100),
        made.kernel("mul", 2, nanoseconds=300),
        made.samples([(77, 0, "add", 0, 1, 5), (77, 0, "mul", 0, 1, 50)]),
    ]
    profile = _picked(tmp_path, Picks(kernels=frozenset({"add"})), *records)
    add, mul = profile.kernels
    assert (add.picked, add.total_samples, add.launch.duration_ns) == (True, 5, 100)
    assert (mul.picked, mul.total_samples, mul.launch.duration_ns) == (False, 0, 300)
    assert (mul.evidence, mul.binary) == (Evidence.STATIC, None)
    assert _codes(profile) == set()  # samples left out on purpose are no loss
    assert summarize_collection(tmp_path / "c").kernels == {"add", "mul"}


def test_launches_are_counted_as_they_were_made_and_not_as_they_ended(tmp_path: Path) -> None:
    records = [made.kernel("add", number, nanoseconds=number) for number in (3, 1, 4, 2)]
    records.append(made.samples([(77, 0, "add", number, 1, 10 * number) for number in (1, 2, 3, 4)]))
    profile = _picked(tmp_path, Picks(kernels=frozenset({"add"}), skip=1, count=2), *records, mode=2)
    assert [(one.picked, one.launch.duration_ns, one.total_samples) for one in profile.kernels] == [
        (False, 5, 0),
        (True, 2, 20),
        (True, 3, 30),
    ]
    # All launches of a kernel are of one image, asked for or not.
    assert len({kernel.binary for kernel in profile.kernels}) == 1


def test_a_few_launches_of_very_many_stay_single(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executions, "MAX_LAUNCHES", 10)
    records = [made.kernel("add", number) for number in range(1, 101)]
    profile = _picked(tmp_path, Picks(kernels=frozenset({"add"}), skip=50, count=3), *records, mode=2)
    assert [one.picked for one in profile.kernels].count(True) == 3
    assert len(profile.kernels) == 4


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "[" * 9999,
        '{"kernels": "add", "skip": 0, "count": null}',
        '{"kernels": [3], "skip": 0, "count": null}',
        '{"kernels": [], "skip": -1, "count": 1}',
        '{"kernels": [], "skip": 0, "count": 1.5}',
    ],
)
def test_damaged_picks_are_one_sentence(tmp_path: Path, text: str) -> None:
    _profile(tmp_path, made.kernel("add", 1))
    (tmp_path / "c" / "picks.json").write_text(text)
    with pytest.raises(ProfileFormatError, match=r"picks.json is damaged \(.*remove it"):
        load_profile(tmp_path / "c")


@pytest.mark.timeout(20)
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes in a folder are POSIX")
def test_a_pipe_is_no_collection(tmp_path: Path) -> None:
    """Opening one waits for a writer that never comes."""
    os.mkfifo(tmp_path / "pipe.gpacupti")
    assert not is_collection(tmp_path / "pipe.gpacupti")
    assert live_counters(tmp_path).processes == 0
    with pytest.raises(ProfileFormatError):
        load_profile(tmp_path)
