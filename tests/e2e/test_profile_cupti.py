# SPDX-License-Identifier: Apache-2.0
"""``gpadvisor profile`` with the injection library, over stand-ins for driver, CUPTI and Nsight Compute."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests import stand_in_ncu as stand_in
from tests.injection import LAUNCH_SAMPLES, Stand, build_stand
from tests.ncu_writer import without_samples, write_report
from tests.sampled import sampled_launch
from tests.stand_in_ncu import stand_in_ncu

from gpadvisor.model.profile import LAUNCHES, Evidence
from gpadvisor.profiler.cupti.discovery import driver_version
from gpadvisor.store.load import load_profile

_LAUNCHES = 10  # of each of the host program's kernels


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Stand:
    return build_stand(tmp_path_factory.mktemp("stand"))


def _profile(
    stand: Stand, folder: Path, *arguments: str, way: str = "plain", **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            *(sys.executable, "-m", "gpadvisor", "profile", *arguments, "--"),
            *(str(stand.host), way, str(stand.image), str(_LAUNCHES)),
        ],
        cwd=folder,
        env={
            **{name: value for name, value in os.environ.items() if name != "CUDA_INJECTION64_PATH"},
            **stand.environment,
            "FAKE_TRUTH": str(folder / "truth"),
            "GPADVISOR_CACHE": str(folder / "cache"),
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_application_and_what_was_measured_is_there(
    stand: Stand, tmp_path: Path, number: signal.Signals
) -> None:
    """The end of a batch job's time, a connection that is lost."""
    running = subprocess.Popen(
        [
            *(sys.executable, "-m", "gpadvisor", "profile", "--collector", "cupti", "--"),
            *(str(stand.host), "for_ever", str(stand.image), str(_LAUNCHES)),
        ],
        cwd=tmp_path,
        env={**os.environ, **stand.environment, "FAKE_TRUTH": str(tmp_path / "truth")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        running.send_signal(number)
        _, said = running.communicate(timeout=120)
    finally:
        running.terminate()
        running.communicate()
    assert running.returncode == 128 + number, said
    assert "profile.gpadvisor: " in said
    assert load_profile(tmp_path / "profile.gpadvisor").kernels[0].total_samples > 0


def _kept(folder: Path, said: str) -> Path:
    (place,) = re.findall(r"what was measured is kept: gpadvisor import (.+)", said)
    done = subprocess.run(
        [sys.executable, "-m", "gpadvisor", "import", place, "-o", str(folder / "again.gpadvisor")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert load_profile(folder / "again.gpadvisor").kernels[0].total_samples > 0
    return Path(place)


def test_a_pattern_that_no_kernel_has_costs_no_measurement(stand: Stand, tmp_path: Path) -> None:
    done = _profile(stand, tmp_path, "--collector", "cupti", "--kernel", "gamma")
    assert done.returncode == 3, done.stderr
    assert "the application launched alpha, beta" in done.stderr
    assert _kept(tmp_path, done.stderr) == tmp_path / "profile.gpadvisor.collection"


def test_a_snapshot_that_cannot_be_written_costs_no_measurement(stand: Stand, tmp_path: Path) -> None:
    """The folder that it was to go to is removed meanwhile."""
    (tmp_path / "gone").mkdir()
    command = f"{stand.host} plain {stand.image} {_LAUNCHES} && rmdir {tmp_path / 'gone'}"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "gpadvisor", "profile", "--collector", "cupti"),
            *("-o", str(tmp_path / "gone/run.gpadvisor"), "--", "sh", "-c", command),
        ],
        cwd=tmp_path,
        env={**os.environ, **stand.environment, "FAKE_TRUTH": str(tmp_path / "truth")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    shutil.rmtree(_kept(tmp_path, done.stderr).parent)


@pytest.mark.parametrize("arguments", [(), ("--mode", "serialized"), ("--collector", "cupti")])
def test_what_was_delivered_is_in_the_snapshot(
    stand: Stand, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    done = _profile(stand, tmp_path, "--no-advice", *arguments)
    assert done.returncode == 0, done.stderr
    profile = load_profile(tmp_path / "profile.gpadvisor")
    # CUPTI counts a latency sample under two names, so that the delivered number has it twice.
    counted = sum(kernel.total_samples for kernel in profile.kernels)
    assert counted == stand.truth(tmp_path / "truth").samples > 0
    assert {kernel.evidence for kernel in profile.kernels} == {Evidence.MEASURED}
    assert profile.collector == "cupti"
    assert "these samples cover 100.0 % of the GPU time that was seen" in done.stderr


def test_advice_on_the_collection_is_advice_on_its_snapshot(stand: Stand, tmp_path: Path) -> None:
    done = _profile(stand, tmp_path, "--no-advice", "--keep-report", "kept")
    assert done.returncode == 0, done.stderr

    def advice(name: str) -> object:
        answer = subprocess.run(
            [sys.executable, "-m", "gpadvisor", "advise", name, "--format", "json"],
            cwd=tmp_path,
            env={**os.environ, "GPADVISOR_CACHE": str(tmp_path / "cache")},
            capture_output=True,
            text=True,
            check=True,
        )
        return json.loads(answer.stdout)["kernels"]

    assert advice("kept") == advice("profile.gpadvisor") != []


def test_an_application_that_is_killed_leaves_a_snapshot(stand: Stand, tmp_path: Path) -> None:
    done = _profile(stand, tmp_path, "--no-advice", way="killed")
    assert done.returncode == 0, done.stderr
    assert "was ended by SIGKILL" in done.stderr
    assert load_profile(tmp_path / "profile.gpadvisor").kernels


def test_a_refusal_runs_the_application_again_for_counts(stand: Stand, tmp_path: Path) -> None:
    counted = tmp_path / "counted.ncu-rep"
    counted.write_bytes(write_report([without_samples(sampled_launch("thermal_stencil"))]))
    ncu = stand_in_ncu(tmp_path / "ncu", report=counted, refuses_counters=stand_in.PERMISSION)
    done = _profile(stand, tmp_path, GPADVISOR_NCU=str(ncu), FAKE_CUPTI="enable=35")
    assert done.returncode == 0, done.stderr
    assert "runs once more" in done.stderr
    assert "NVreg_RestrictProfilingToAdminUsers" in done.stderr
    assert load_profile(tmp_path / "profile.gpadvisor").kernels[0].evidence is Evidence.COUNTED


def test_a_refusal_without_ncu_keeps_the_launches_and_says_why(stand: Stand, tmp_path: Path) -> None:
    done = _profile(stand, tmp_path, FAKE_CUPTI="enable=35")
    assert done.returncode == 0, done.stderr
    assert "ERR_NVGPUCTRPERM" in done.stderr
    profile = load_profile(tmp_path / "profile.gpadvisor")
    assert {kernel.evidence for kernel in profile.kernels} == {Evidence.STATIC}
    assert all(kernel.launch.duration_ns for kernel in profile.kernels)
    said = " ".join(done.stdout.split())
    assert "! Machine code alone: there are no PC samples: the driver refuses performance counters" in said
    assert done.stdout.count("here are no PC samples") == 1


def _sampled(folder: Path) -> dict[str, tuple[int, int]]:
    """Entries and samples of each kernel that was asked for."""
    found: dict[str, tuple[int, int]] = {}
    for kernel in load_profile(folder / "profile.gpadvisor").kernels:
        if kernel.picked:
            entries, samples = found.get(kernel.launch.kernel, (0, 0))
            found[kernel.launch.kernel] = entries + 1, samples + kernel.total_samples
    return found


def test_only_kernels_that_are_asked_for_are_in_the_snapshot(stand: Stand, tmp_path: Path) -> None:
    """Alpha runs 10 times, beta 20 times as long: the samples are of the wrong kernel, and that is said."""
    done = _profile(stand, tmp_path, "--collector", "cupti", "--kernel", "^al.ha")
    assert done.returncode == 0, done.stderr
    samples = LAUNCH_SAMPLES["alpha"][0]
    assert _sampled(tmp_path) == {"alpha": (1, _LAUNCHES * samples)}
    said = " ".join(done.stderr.split())
    assert "the other kernels are timed, too" in said
    assert "10 launches of 1 kernels" in said
    assert "of the GPU time that was seen (alpha); beta takes 66.7 % and has none" in said
    assert "gpadvisor profile --kernel beta -- APP profiles it" in said
    (other,) = [
        kernel for kernel in load_profile(tmp_path / "profile.gpadvisor").kernels if not kernel.picked
    ]
    assert (other.launch.kernel, other.binary, other.total_samples) == ("beta", None, 0)
    # The advice is of alpha alone, with its share of all GPU time, and offers beta.
    advice = " ".join(done.stdout.split())
    assert "profile.gpadvisor: 1 kernel, 10 us" in advice
    assert "alpha takes 33 % of the time; no machine code" in advice
    assert "33.3 % of the GPU time" in advice
    assert "gpadvisor profile --kernel beta -- APP" in advice


def test_launches_are_picked_one_by_one(stand: Stand, tmp_path: Path) -> None:
    picked = ("--collector", "cupti", "--kernel", "beta", "--launch-skip", "3", "--launch-count", "2")
    done = _profile(stand, tmp_path, "--no-advice", *picked, "--keep-report", "kept")
    assert done.returncode == 0, done.stderr
    assert "kernels run one at a time" in done.stderr
    assert "2 launches of 1 kernels" in done.stderr
    assert _sampled(tmp_path) == {"beta": (2, 2 * LAUNCH_SAMPLES["beta"][0])}
    others = [kernel for kernel in load_profile(tmp_path / "profile.gpadvisor").kernels if not kernel.picked]
    assert sorted((kernel.launch.kernel, kernel.metric(LAUNCHES)) for kernel in others) == [
        ("alpha", _LAUNCHES),
        ("beta", 2 * _LAUNCHES - 2),
    ]
    # What is kept of the collection has the same picks in it.
    kept = load_profile(tmp_path / "kept")
    assert [kernel.launch for kernel in kept.kernels if kernel.picked] == [
        kernel.launch for kernel in load_profile(tmp_path / "profile.gpadvisor").kernels if kernel.picked
    ]


def test_without_ncu_cupti_takes_the_kernels_that_are_asked_for(stand: Stand, tmp_path: Path) -> None:
    done = _profile(stand, tmp_path, "--no-advice", "--kernel", "beta", GPADVISOR_NCU=str(tmp_path / "none"))
    assert done.returncode == 0, done.stderr
    assert list(_sampled(tmp_path)) == ["beta"]


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("--kernel", "gamma"), 3, "the application launched alpha, beta"),
        (("--kernel", "al(pha"), 2, "is no regular expression"),
        (("--launch-count", "0"), 2, "give at least 1"),
        (
            ("--launch-skip", "99"),
            3,
            "no kernel launch was collected; give another --kernel or --launch-skip",
        ),
        (("--mode", "continuous", "--launch-skip", "1"), 2, "samples belong to kernels and not to launches"),
    ],
)
def test_what_picks_nothing_is_one_sentence(
    stand: Stand, tmp_path: Path, arguments: tuple[str, ...], status: int, words: str
) -> None:
    done = _profile(stand, tmp_path, "--collector", "cupti", *arguments)
    assert (done.returncode, "Traceback" in done.stderr) == (status, False)
    assert words in " ".join(done.stderr.split())
    assert not (tmp_path / "profile.gpadvisor").exists()


def test_an_application_without_cuda_is_one_sentence(stand: Stand, tmp_path: Path) -> None:
    """With the stand-in's driver, and with none where this machine has none."""
    for environment, words in (
        (stand.environment, "the application did not use CUDA"),
        ({name: value for name, value in stand.environment.items() if name != "LD_LIBRARY_PATH"}, "driver"),
    ):
        if words == "driver" and driver_version() is not None:
            continue
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "gpadvisor",
                "profile",
                "--collector",
                "cupti",
                "--",
                "sh",
                "-c",
                "exit 5",
            ],
            cwd=tmp_path,
            env={**environment, "GPADVISOR_CACHE": str(tmp_path / "cache")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 4, done.stderr
        last = done.stderr.splitlines()[-1]
        assert words in last
        assert "the application ended with status 5; gpadvisor doctor" in last
        assert not (tmp_path / "profile.gpadvisor").exists()


def test_a_profiler_that_is_attached_already_is_one_sentence(stand: Stand, tmp_path: Path) -> None:
    done = _profile(stand, tmp_path, "--collector", "cupti", FAKE_CUPTI="subscribe=39")
    assert done.returncode == 4
    assert "nothing was collected: nothing was collected" not in done.stderr
    assert "another profiler is attached" in done.stderr.splitlines()[-1]
