# SPDX-License-Identifier: Apache-2.0
"""The injection library end to end: what the stand-in delivered is what the profile has."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.injection import LAUNCH_SAMPLES, Stand, found_cupti
from tests.isolated import read_isolated

from gpadvisor.model.problem import ProblemCode
from gpadvisor.model.profile import CONFIGURATIONS, LAUNCHES, Evidence, KernelProfile, Profile
from gpadvisor.store.collection.files import live_counters
from gpadvisor.store.load import load_profile


def _launches(profile: Profile) -> int:
    return sum(int(kernel.metrics[LAUNCHES]) for kernel in profile.kernels)


def _samples(profile: Profile) -> int:
    return sum(kernel.total_samples for kernel in profile.kernels)


def _codes(profile: Profile) -> set[ProblemCode]:
    return {problem.code for problem in profile.problems}


def _kernel(profile: Profile, name: str) -> KernelProfile:
    (found,) = [kernel for kernel in profile.kernels if kernel.launch.kernel == name]
    return found


def test_everything_delivered_is_in_the_profile(stand: Stand, tmp_path: Path) -> None:
    done, truth = stand.run(tmp_path / "out", "plain", 10)
    assert (done.returncode, done.stderr) == (0, "")
    profile = read_isolated(tmp_path / "out")
    assert profile.collector == "cupti"
    assert profile.problems == ()
    assert _launches(profile) == truth.launches == 30
    assert _samples(profile) == truth.samples == truth.samples_made
    for name, launches in (("alpha", 10), ("beta", 20)):
        kernel = _kernel(profile, name)
        assert kernel.evidence is Evidence.MEASURED
        assert (kernel.total_samples, kernel.latency_samples) == tuple(
            launches * each for each in LAUNCH_SAMPLES[name]
        )
        assert profile.binaries[kernel.binary or ""] == stand.image.read_bytes()
        assert kernel.sections == (name,)
        assert kernel.sampling.interval_cycles == 4096
        assert kernel.problems == ()


def test_columns_are_by_reason_and_address(stand: Stand, tmp_path: Path) -> None:
    stand.run(tmp_path / "out", "plain", 10)
    kernel = _kernel(load_profile(tmp_path / "out"), "alpha")
    names = [reason.name for reason in kernel.reasons]
    assert names == ["long_scoreboard", "selected", "a_reason_of_tomorrow"]
    rows = {
        (int(pc), names[int(reason)]): (int(total), int(latency))
        for pc, reason, total, latency in zip(
            kernel.samples.pc,
            kernel.samples.reason,
            kernel.samples.total,
            kernel.samples.latency,
            strict=True,
        )
    }
    expected = {(16 * pc, "long_scoreboard"): (10 * (3 + pc), 10 * (1 + pc)) for pc in range(5)}
    expected |= {(16 * pc, "selected"): (20, 0) for pc in (1, 3)}
    expected[64, "a_reason_of_tomorrow"] = (10, 0)
    assert rows == expected


def test_launch_and_device_facts(stand: Stand, tmp_path: Path) -> None:
    stand.run(tmp_path / "out", "ex", 1)
    profile = load_profile(tmp_path / "out")
    launch = _kernel(profile, "beta").launch
    assert (launch.grid, launch.block, launch.dynamic_shared_bytes) == ((10, 1, 1), (256, 1, 1), 256)
    assert (launch.registers_per_thread, launch.static_shared_bytes) == (40, 512)
    assert launch.duration_ns == 2 * 1001
    device = _kernel(profile, "beta").device
    assert (device.arch, device.sms, device.name, device.max_warps_per_sm) == ("sm_80", 108, "Fake GPU 0", 64)
    grids = {row.launch.grid for row in profile.kernels}
    assert grids == {(100, 1, 1), (10, 1, 1)}
    assert _kernel(profile, "alpha").metrics[CONFIGURATIONS] == 2


def test_launch_parameters_without_activity_records(stand: Stand, tmp_path: Path) -> None:
    stand.run(tmp_path / "out", "ex", 1, GPADVISOR_COLLECT_TIMES="0", GPADVISOR_COLLECT_MODE="serialized")
    launches = [row.launch for row in load_profile(tmp_path / "out").kernels]
    assert [(row.grid, row.block, row.dynamic_shared_bytes, row.duration_ns) for row in launches] == [
        ((100, 1, 1), (128, 1, 1), 256, None),
        ((10, 1, 1), (256, 1, 1), 256, None),
        ((10, 1, 1), (256, 1, 1), 256, None),
        ((33, 2, 1), (96, 1, 1), 1024, None),
    ]


def test_serialized_mode_ties_samples_to_launches(stand: Stand, tmp_path: Path) -> None:
    _, truth = stand.run(tmp_path / "out", "plain", 3, GPADVISOR_COLLECT_MODE="serialized")
    profile = load_profile(tmp_path / "out")
    assert [kernel.launch.kernel for kernel in profile.kernels] == ["alpha"] * 3 + ["beta"] * 6
    for kernel in profile.kernels:
        assert (kernel.total_samples, kernel.latency_samples) == LAUNCH_SAMPLES[kernel.launch.kernel]
    assert _samples(profile) == truth.samples_made


def test_continuous_mode_says_that_configurations_are_mixed(stand: Stand, tmp_path: Path) -> None:
    stand.run(tmp_path / "continuous", "mixed", 4)
    profile = load_profile(tmp_path / "continuous")
    assert ProblemCode.MIXED_CONFIGURATIONS in {p.code for p in _kernel(profile, "alpha").problems}
    assert ProblemCode.MIXED_CONFIGURATIONS not in {p.code for p in _kernel(profile, "beta").problems}
    stand.run(tmp_path / "serialized", "mixed", 4, GPADVISOR_COLLECT_MODE="serialized")
    for kernel in load_profile(tmp_path / "serialized").kernels:
        assert ProblemCode.MIXED_CONFIGURATIONS not in {problem.code for problem in kernel.problems}


@pytest.mark.parametrize("mode", ["threads", "brief_threads", "destroyed", "unload", "runtime", "graph"])
def test_threads_contexts_and_ways_to_launch(stand: Stand, tmp_path: Path, mode: str) -> None:
    done, truth = stand.run(tmp_path / "out", mode, 25)
    assert (done.returncode, done.stderr) == (0, "")
    profile = load_profile(tmp_path / "out")
    assert _samples(profile) == truth.samples == truth.samples_made
    assert _launches(profile) == truth.kernels
    assert live_counters(tmp_path / "out").launches == truth.launches
    if mode == "threads":
        assert {kernel.device.name for kernel in profile.kernels} == {"Fake GPU 0", "Fake GPU 1"}
        assert any(
            "samples one context of a GPU at a time" in problem.message for problem in profile.problems
        )


@pytest.mark.parametrize("sampling", ["continuous", "serialized"])
def test_nodes_of_graphs_take_no_memory(stand: Stand, tmp_path: Path, sampling: str) -> None:
    """Of the application while it runs, and little of whoever reads what they left."""
    most = {}
    for nodes in (2, 2000):
        done, truth = stand.run(
            tmp_path / f"{nodes}",
            "graphs",
            100,
            GPADVISOR_COLLECT_MODE=sampling,
            FAKE_CUPTI=f"nodes={nodes}",
        )
        assert (done.returncode, done.stderr) == (0, "")
        most[nodes] = int(done.stdout) << 10
    assert truth.kernels == 300 + 100 * 2000
    # Samples of each node come in serialized mode; the library reads them after the launch.
    assert most[2000] - most[2] < 8 << 20
    collection = tmp_path / "2000"
    reader = subprocess.run(
        [sys.executable, "-c", _READ, str(collection)], capture_output=True, text=True, check=True
    )
    grown, launches, samples = map(int, reader.stdout.split())
    assert (launches, samples) == (truth.kernels, truth.samples)
    file_bytes = sum(file.stat().st_size for file in collection.glob("*.gpacupti"))
    assert grown < (32 << 20) + 2 * file_bytes


_READ = """
import sys
from pathlib import Path
from gpadvisor.store.load import load_profile
def most():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))
before = most()
kernels = load_profile(Path(sys.argv[1])).kernels
launches = sum(int(kernel.metrics["gpadvisor__launches"]) for kernel in kernels)
print(most() - before, launches, sum(kernel.total_samples for kernel in kernels))
"""


@pytest.mark.parametrize("sampling", ["continuous", "serialized"])
def test_no_launch_waits_for_a_thread_that_reads_samples(stand: Stand, tmp_path: Path, sampling: str) -> None:
    """The first read does not come back before other threads have launched: the stand-in would abort."""
    done, truth = stand.run(
        tmp_path / "out", "brief_threads", 3, GPADVISOR_COLLECT_MODE=sampling, FAKE_CUPTI="gate=6"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert truth.launches == 24
    assert _samples(load_profile(tmp_path / "out")) == truth.samples_made


def test_a_kernel_of_a_runtime_call_has_the_stack_of_its_driver_call(stand: Stand, tmp_path: Path) -> None:
    stand.run(tmp_path / "out", "runtime", 5, GPADVISOR_COLLECT_MODE="serialized")
    runtime = [row for row in load_profile(tmp_path / "out").kernels if row.launch.dynamic_shared_bytes == 0]
    assert len(runtime) == 5
    for kernel in runtime:
        assert kernel.total_samples == LAUNCH_SAMPLES["alpha"][0]
        assert any(frame.function == "main" for frame in kernel.call_stack)


def test_a_failed_launch_is_counted_and_left_out(stand: Stand, tmp_path: Path) -> None:
    stand.run(tmp_path / "out", "failing", 2)
    profile = load_profile(tmp_path / "out")
    assert _launches(profile) == 6
    assert ProblemCode.FAILED_LAUNCH in _codes(profile)


def test_native_frames_begin_in_the_application(stand: Stand, tmp_path: Path) -> None:
    stand.run(tmp_path / "out", "slowly", 2)
    stack = _kernel(load_profile(tmp_path / "out"), "alpha").call_stack
    assert stack[0].function == "launch_some"
    assert Path(stack[0].module or "").name == "host"
    assert "main" in {frame.function for frame in stack}


@pytest.mark.parametrize(
    ("mode", "status"),
    [("segv", -signal.SIGSEGV), ("abort", -signal.SIGABRT), ("killed", -signal.SIGKILL), ("_exit", 5)],
)
def test_a_sudden_end_loses_no_launch(stand: Stand, tmp_path: Path, mode: str, status: int) -> None:
    done, truth = stand.run(tmp_path / "out", mode, 50)
    assert done.returncode == status
    profile = load_profile(tmp_path / "out")
    assert _launches(profile) == truth.launches == 150
    assert ProblemCode.UNFINISHED_COLLECTION in _codes(profile)
    assert _samples(profile) >= truth.samples


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGSEGV])
@pytest.mark.parametrize("launches", [20, 3000, 20_000])
def test_a_kill_at_any_moment_loses_nothing_delivered(
    stand: Stand, tmp_path: Path, launches: int, signal_number: int
) -> None:
    output, truth_path = tmp_path / "out", tmp_path / "truth"
    output.mkdir()
    process = subprocess.Popen(
        [str(stand.host), "for_ever", str(stand.image), "5"],
        env=stand.variables(output, truth_path),
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    with process, process.stdout:
        assert process.stdout.readline() == b"ready\n"
        while stand.truth(truth_path).launches < launches:
            time.sleep(0.005)
        process.send_signal(signal_number)
        process.wait()
    truth = stand.truth(truth_path)
    profile = load_profile(output)
    # The stand-in counts a launch when its callbacks have returned: one more may be in the file.
    assert live_counters(output).launches - truth.launches in {0, 1}
    assert truth.samples <= _samples(profile) <= truth.samples_made
    assert truth.launches >= launches


def test_an_interrupt_that_nobody_handles_saves_the_samples_first(stand: Stand, tmp_path: Path) -> None:
    done, truth = stand.run(tmp_path / "out", "interrupted", 20)
    assert done.returncode == -signal.SIGINT
    profile = load_profile(tmp_path / "out")
    assert profile.problems == ()
    assert _samples(profile) == truth.samples_made


@pytest.mark.slow
def test_an_interrupt_has_its_way_where_cupti_does_not_come_back(stand: Stand, tmp_path: Path) -> None:
    """Disabling may wait for a launch, and for ever; what was read before is there."""
    done, truth = stand.run(tmp_path / "out", "interrupted", 20, FAKE_CUPTI="stuck")
    assert done.returncode == -signal.SIGINT
    assert live_counters(tmp_path / "out").launches == truth.launches == 60


@pytest.mark.parametrize(
    ("mode", "files", "launches"),
    [("fork", 1, 40), ("fork_quiet", 1, 40), ("fork_use", 2, 43), ("fork_exec", 2, 52)],
)
def test_children_have_files_of_their_own(
    stand: Stand, tmp_path: Path, mode: str, files: int, launches: int
) -> None:
    done, truth = stand.run(tmp_path / "out", mode, 10)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(list((tmp_path / "out").glob("*.gpacupti"))) == files
    profile = load_profile(tmp_path / "out")
    assert _launches(profile) == truth.launches == launches
    assert _samples(profile) == truth.samples
    assert (profile.command or "").split()[1] == mode
    assert all(kernel.binary is not None for kernel in profile.kernels)


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ("enable=7", "CUPTI answers"),
        ("enable=35", "ERR_NVGPUCTRPERM"),
        ("enable=26", "dcgmi profile --pause"),
        ("enable=8", "not enough memory"),
        ("enable=27", "compute capability 7.0"),
        ("enable=41", "confidential computing"),
        ("configure=8", "not enough memory"),
        ("reasons=7", "CUPTI answers"),
        ("attribute=2", "CUPTI answers"),
    ],
)
def test_refused_sampling_leaves_launches_and_says_why(
    stand: Stand, tmp_path: Path, wish: str, words: str
) -> None:
    done, truth = stand.run(tmp_path / "out", "plain", 10, FAKE_CUPTI=wish)
    assert done.returncode == 0
    profile = load_profile(tmp_path / "out")
    assert _launches(profile) == truth.launches
    assert any(words in problem.message for problem in profile.problems)
    for kernel in profile.kernels:
        assert kernel.evidence is Evidence.STATIC
        assert kernel.launch.duration_ns is not None
        assert any(p.code is ProblemCode.NO_SAMPLES and words in p.message for p in kernel.problems)


def test_another_profiler_is_named(stand: Stand, tmp_path: Path) -> None:
    done, _ = stand.run(tmp_path / "out", "plain", 10, FAKE_CUPTI="subscribe=39")
    assert done.returncode == 0
    assert "another profiler is attached" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    profile = load_profile(tmp_path / "out")
    assert any("another profiler is attached" in problem.message for problem in profile.problems)


def test_cupti_s_own_counts_are_no_stalls(stand: Stand, tmp_path: Path) -> None:
    """It delivers them among the reasons, asked for or not."""
    _, truth = stand.run(tmp_path / "out", "threads", 10)
    profile = load_profile(tmp_path / "out")
    assert not {reason.name for kernel in profile.kernels for reason in kernel.reasons} & {
        "smsp__pcsamp_sample_count",
        "smsp__pcsamp_samples_data_dropped",
    }
    assert _samples(profile) == truth.samples_made


def test_kinds_of_gpu_number_their_reasons_differently(stand: Stand, tmp_path: Path) -> None:
    """Two devices in one process, whose numbers for the same reasons are swapped."""
    stand.run(tmp_path / "out", "threads", 10)
    shares = {}
    for kernel in load_profile(tmp_path / "out").kernels:
        if not kernel.total_samples:
            continue
        names = [reason.name for reason in kernel.reasons]
        by_reason = dict.fromkeys(names, 0)
        for reason, total in zip(kernel.samples.reason, kernel.samples.total, strict=True):
            by_reason[names[int(reason)]] += int(total)
        found = tuple(round(by_reason[name] / kernel.total_samples, 6) for name in sorted(by_reason))
        shares.setdefault(kernel.launch.kernel, set()).add(found)
        total, latency = LAUNCH_SAMPLES[kernel.launch.kernel]
        assert kernel.total_samples * latency == kernel.latency_samples * total
    assert [len(found) for found in shares.values()] == [1, 1]


def test_totals_are_rows_and_dropped_and_non_user_samples(stand: Stand, tmp_path: Path) -> None:
    """It "includes samples for user modules, samples for non-user kernels and dropped samples"."""
    done, _ = stand.run(tmp_path / "out", "plain", 10, FAKE_CUPTI="non_user=7,dropped=3")
    profile = load_profile(tmp_path / "out")
    assert done.returncode == 0
    assert ProblemCode.INCONSISTENT_REPORT not in _codes(profile)
    assert any("kernels of the driver's own" in problem.message for problem in profile.problems)


def test_totals_that_are_not_are_said(stand: Stand, tmp_path: Path) -> None:
    stand.run(tmp_path / "out", "plain", 10, FAKE_CUPTI="non_user=7,dropped=3,unequal=4")
    (said,) = [
        problem.message
        for problem in load_profile(tmp_path / "out").problems
        if problem.code is ProblemCode.INCONSISTENT_REPORT
    ]
    assert "CUPTI counted 4 samples differently than it delivered them, in 1 contexts" in said


def test_a_buffer_without_room_for_the_last_samples_is_said(stand: Stand, tmp_path: Path) -> None:
    """What disabling brings beyond it, CUPTI discards."""
    done, truth = stand.run(tmp_path / "out", "plain", 1, FAKE_CUPTI="unread,pcs=70000")
    assert done.returncode == 0
    profile = load_profile(tmp_path / "out")
    assert _samples(profile) < truth.samples_made
    assert any("some may be lost" in problem.message for problem in profile.problems)


@pytest.mark.parametrize("wish", ["pcs=20000", "unread,pcs=20000"])
def test_large_kernels_have_room(stand: Stand, tmp_path: Path, wish: str) -> None:
    """In CUPTI's scratch buffer, and in the buffer for what comes only when sampling is disabled."""
    done, truth = stand.run(tmp_path / "out", "plain", 1, FAKE_CUPTI=wish)
    assert (done.returncode, done.stderr) == (0, "")
    assert _samples(load_profile(tmp_path / "out")) == truth.samples == truth.samples_made


def test_the_period_that_was_set_is_recorded(stand: Stand, tmp_path: Path) -> None:
    """Reading a configuration gives CUPTI's defaults, by its header."""
    stand.run(tmp_path / "out", "plain", 1, GPADVISOR_COLLECT_PERIOD="9", GPADVISOR_COLLECT_BUFFER="33554432")
    sampling = _kernel(load_profile(tmp_path / "out"), "alpha").sampling
    assert (sampling.interval_cycles, sampling.buffer_bytes) == (512, 32 << 20)


def test_times_beside_continuous_samples(stand: Stand, tmp_path: Path) -> None:
    """Not by CONCURRENT_KERNEL, beside which some releases give no samples."""
    _, truth = stand.run(tmp_path / "out", "plain", 10, FAKE_CUPTI="late_exclusive")
    profile = load_profile(tmp_path / "out")
    assert _samples(profile) == truth.samples_made
    assert None not in {kernel.launch.duration_ns for kernel in profile.kernels}


@pytest.mark.parametrize("version", [24, 26, 28, 130000, 130001, 130500])
def test_concurrent_times_come_where_the_release_gives_them(
    stand: Stand, tmp_path: Path, version: int
) -> None:
    """By the release notes; the stand-in aborts where an older one is asked for them."""
    done, truth = stand.run(
        tmp_path / "out",
        "plain",
        10,
        GPADVISOR_COLLECT_TIMES="concurrent",
        FAKE_CUPTI=f"version={version}",
    )
    assert (done.returncode, done.stderr) == (0, "")
    profile = load_profile(tmp_path / "out")
    assert _samples(profile) == truth.samples_made
    assert None not in {kernel.launch.duration_ns for kernel in profile.kernels}
    said = [problem.message for problem in profile.problems if "one at a time" in problem.message]
    assert len(said) == (version < 130001)


def test_an_error_of_reading_is_not_taken_for_one_of_times(stand: Stand, tmp_path: Path) -> None:
    done, _ = stand.run(
        tmp_path / "out", "slowly", 10, FAKE_CUPTI="late_exclusive", GPADVISOR_COLLECT_TIMES="concurrent"
    )
    assert done.returncode == 0
    profile = load_profile(tmp_path / "out")
    assert any("could not be read to the end" in problem.message for problem in profile.problems)
    assert None not in {kernel.launch.duration_ns for kernel in profile.kernels}


@pytest.mark.parametrize("wish", ["exclusive"])
def test_samples_are_worth_more_than_times(stand: Stand, tmp_path: Path, wish: str) -> None:
    _, truth = stand.run(tmp_path / "out", "plain", 10, FAKE_CUPTI=wish)
    profile = load_profile(tmp_path / "out")
    assert _samples(profile) == truth.samples_made > 0
    assert {kernel.launch.duration_ns for kernel in profile.kernels} == {None}
    assert any("no kernel times" in problem.message for problem in profile.problems)


def test_a_full_hardware_buffer_and_dropped_samples_are_told(stand: Stand, tmp_path: Path) -> None:
    _, truth = stand.run(tmp_path / "out", "slowly", 10, FAKE_CUPTI="full=1,dropped=11")
    profile = load_profile(tmp_path / "out")
    kernel = _kernel(profile, "alpha")
    assert kernel.sampling.truncated
    assert kernel.sampling.dropped_samples == truth.dropped > 0
    codes = {problem.code for problem in kernel.problems}
    assert {ProblemCode.TRUNCATED_SAMPLES, ProblemCode.DROPPED_SAMPLES} <= codes
    assert _samples(profile) == truth.samples_made  # reading went on after the full buffer


def test_an_error_of_reading_is_told_once(stand: Stand, tmp_path: Path) -> None:
    stand.run(tmp_path / "out", "slowly", 10, FAKE_CUPTI="data=999")
    messages = [p.message for p in load_profile(tmp_path / "out").problems]
    assert len([text for text in messages if "could not be read to the end" in text]) == 1


def test_after_a_fatal_error_cupti_is_left_alone(stand: Stand, tmp_path: Path) -> None:
    """The stand-in aborts where it is called by the thread that was told."""
    done, truth = stand.run(tmp_path / "out", "plain", 10, FAKE_CUPTI="fatal=20")
    assert (done.returncode, done.stderr, truth.launches) == (0, "", 30)
    profile = load_profile(tmp_path / "out")
    assert live_counters(tmp_path / "out").launches == 30
    assert any("fell off the bus" in problem.message for problem in profile.problems)


def test_a_library_of_another_layout_is_refused(stand: Stand, tmp_path: Path) -> None:
    done, _ = stand.run(tmp_path / "out", "plain", 1, FAKE_CUPTI="version=18")
    assert done.returncode == 0
    assert re.fullmatch(
        r"gpadvisor: nothing is collected in process \d+: libcupti has version 18.*\n", done.stderr
    )


def test_a_machine_without_a_driver(stand: Stand, tmp_path: Path) -> None:
    script = f"import ctypes; print(ctypes.CDLL({str(stand.library)!r}).InitializeInjection())"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"GPADVISOR_COLLECT_DIR": str(tmp_path), "LD_LIBRARY_PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    if "no NVIDIA driver" not in done.stderr and Path("/proc/driver/nvidia").exists():
        pytest.skip("this machine has a driver")
    assert done.stdout == "1\n"
    assert re.fullmatch(
        r"gpadvisor: nothing is collected in process \d+: this machine has no NVIDIA driver \(.*\)\n",
        done.stderr,
    )
    assert "no NVIDIA driver" in load_profile(tmp_path).problems[0].message


def test_the_real_cupti_with_a_driver_that_it_does_not_know(stand: Stand, tmp_path: Path) -> None:
    """All functions are found in NVIDIA's own library, which then refuses the stand-in for the driver."""
    library = found_cupti().library
    if library is None:
        pytest.skip("there are headers of CUPTI, and no library beside them")
    only_driver = tmp_path / "driver"
    only_driver.mkdir()
    (only_driver / "libcuda.so.1").symlink_to(stand.folder / "libcuda.so.1")
    changed = {"LD_LIBRARY_PATH": str(only_driver), "GPADVISOR_CUPTI": str(library)}
    done, _ = stand.run(tmp_path / "out", "status7", 3, **changed)
    assert done.returncode == 7
    # Releases differ in when they notice.
    assert re.search("CUPTI (does not work with this driver|refuses to start)", done.stderr)
    assert len(done.stderr.splitlines()) == 1


def test_without_a_directory_it_steps_aside(stand: Stand, tmp_path: Path) -> None:
    for folder in ("", str(tmp_path / "absent")):
        done = subprocess.run(
            [str(stand.host), "status7", str(stand.image), "2"],
            env={**stand.variables(tmp_path, tmp_path / "truth"), "GPADVISOR_COLLECT_DIR": folder},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 7
        assert len(done.stderr.splitlines()) == 1
        assert "nothing is collected" in done.stderr


def test_no_room_for_the_file_does_not_hurt_the_application(stand: Stand, tmp_path: Path) -> None:
    limited = ("sh", "-c", 'ulimit -f 512; exec "$@"', "sh")  # blocks of 512 bytes: four units
    done, truth = stand.run(tmp_path / "out", "plain", 2000, command=limited)
    assert done.returncode == 0
    assert truth.launches == 6000
    live = live_counters(tmp_path / "out")
    assert live.launches == 6000
    assert live.lost_records > 0
    profile = load_profile(tmp_path / "out")
    assert any("could not write" in problem.message for problem in profile.problems)
    assert 0 < _launches(profile) < 6000


def test_python_frames_of_a_thread_without_the_lock(stand: Stand, tmp_path: Path) -> None:
    for number, python in enumerate(_interpreters()):
        output = tmp_path / f"out{number}"
        output.mkdir()
        done = subprocess.run(
            [python, str(Path(__file__).parent / "launching.py"), str(stand.folder), str(stand.image)],
            env=stand.variables(output, tmp_path / f"truth{number}"),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (python, done.stderr)
        profile = load_profile(output)
        stack = _kernel(profile, "alpha").call_stack
        frames = [(Path(f.file or "").name, f.function, f.line) for f in stack if f.module == "python"]
        functions = [(name or "").rsplit(".", 1)[-1] for _, name, _ in frames]
        assert functions == ["launch", "übergang", "<module>"], python
        assert {file for file, _, _ in frames} == {"launching.py"}, python
        lines = Path(__file__).with_name("launching.py").read_text("utf-8").splitlines()
        marks = ["# launch", "# call", "# module"]
        assert [mark in lines[(line or 1) - 1] for mark, (_, _, line) in zip(marks, frames, strict=True)] == [
            True
        ] * 3, python


def _interpreters() -> list[str]:
    """This Python, and others where they are: the library reads frames of 3.9 to 3.13."""
    found = [sys.executable]
    for minor in range(9, 14):
        try:
            done = subprocess.run(
                [f"python3.{minor}", "-c", "import sys; print(sys.executable)"],
                capture_output=True,
                text=True,
                check=True,
            )
        except (OSError, subprocess.CalledProcessError):
            continue
        found.append(done.stdout.strip())
    found += filter(None, os.environ.get("GPADVISOR_TEST_PYTHONS", "").split(os.pathsep))
    return found
