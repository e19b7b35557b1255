# SPDX-License-Identifier: Apache-2.0
"""Our reader and NVIDIA's ncu_report, which runs in a process of its own, read the same from real reports."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.ncu_writer import FrameSpec, LaunchSpec, RuleSpec, write_report
from tests.tiny_cubin import tiny_cubin

from gpadvisor.store.load import load_profile
from gpadvisor.store.ncu import container
from gpadvisor.store.ncu.metrics import Metric
from gpadvisor.store.ncu.report import Report, parse_report

DUMP = Path(__file__).parent / "dump_report.py"
KINDS = {0: "none", 1: "ok", 2: "optimization", 3: "warning", 4: "error"}  # NVIDIA's MsgType
FOLDER = os.environ.get("GPADVISOR_REPORTS")
REPORTS = sorted(Path(FOLDER).glob("*.ncu-rep*")) if FOLDER else []

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("ncu_report") is None, reason="ncu_report is not installed"
)


def nvidia_reads(path: Path) -> list[dict[str, Any]]:
    run = subprocess.run(
        [sys.executable, str(DUMP), str(path)], capture_output=True, timeout=200, check=True, text=True
    )
    found: list[dict[str, Any]] = json.loads(run.stdout)
    return found


def we_read(path: Path) -> Report:
    data = path.read_bytes()
    return parse_report(container.decompress(data) if container.is_compressed(data) else data)


def same_number(ours: object, theirs: object) -> bool:
    if isinstance(theirs, str) and isinstance(ours, float | np.floating):
        number = float(theirs)  # they print doubles with repr
        return float(ours) == number or (math.isnan(number) and math.isnan(ours))
    return bool(ours == theirs)


def compare_metric(ours: Metric, theirs: dict[str, Any]) -> int:
    """Compare one metric; return how many numbers were compared."""
    assert ours.value is None or same_number(ours.value, theirs["value"]), (ours.name, theirs["value"])
    instances = ours.instances()
    if "ids" not in theirs:
        return 1
    assert instances is not None, ours.name
    assert list(instances.ids) == theirs["ids"], ours.name
    pairs = zip(instances.values, theirs["values"], strict=True)
    wrong = [(a, b) for a, b in pairs if not same_number(a, b)]
    assert not wrong, (ours.name, wrong[:3])
    return 1 + 2 * len(instances)


def compare(path: Path) -> int:
    report, actions = we_read(path), nvidia_reads(path)
    assert [result.mangled for result in report.results] == [action["mangled"] for action in actions]
    compared = 0
    for result, action in zip(report.results, actions, strict=True):
        assert (result.function, result.demangled) == (action["function"], action["demangled"])
        assert set(result.metrics) == set(action["metrics"])
        for name, theirs in action["metrics"].items():
            compared += compare_metric(result.metrics[name], theirs)
        said = [
            (rule.identifier, rule.name, rule.section, message.title, message.text, message.kind)
            for rule in result.rules
            for message in rule.messages
        ]
        # Tables and focus metrics without a message of their own come as results with an empty one.
        theirs_said = [_rule(rule) for rule in action["rules"] if rule["rule_message"]["message"]]
        assert sorted(said, key=str) == sorted(theirs_said, key=str)
        files = {} if result.source is None else result.source.files
        assert {name: text for name, text in files.items() if text} == {
            name: text for name, text in action["files"].items() if text
        }
    return compared


def _rule(rule: dict[str, Any]) -> tuple[str | None, ...]:
    message = rule["rule_message"]
    section = rule["section_identifier"] or None
    kind = KINDS[message["type"]]
    return (rule["rule_identifier"], rule["name"], section, message["title"], message["message"], kind)


@pytest.mark.reports
@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_every_scalar_instance_rule_and_source(path: Path) -> None:
    assert compare(path) > 100


@pytest.mark.reports
@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_the_profile_holds_all_samples_that_nvidia_counts(path: Path) -> None:
    profile = load_profile(path)
    for kernel, action in zip(profile.kernels, nvidia_reads(path), strict=True):
        for part, suffix in ((kernel.samples.total, ""), (kernel.samples.latency, "_not_issued")):
            for index, reason in enumerate(kernel.reasons):
                name = f"smsp__pcsamp_warps_issue_stalled_{reason.name}{suffix}"
                name = (
                    name if name in action["metrics"] else name.replace("warps_issue_stalled", "warp_stall")
                )
                mine = int(part[kernel.samples.reason == index].sum())
                theirs = action["metrics"].get(name)
                assert mine == (0 if theirs is None else round(float(theirs["value"]))), name


def test_a_written_report(tmp_path: Path) -> None:
    path = tmp_path / "written.ncu-rep"
    cubin = tiny_cubin({"first": [], "second": []})
    first = LaunchSpec(
        kernel="first",
        cubin=cubin,
        samples={("first", 16, "wait"): (300, 20), ("first", 32, "long_scoreboard"): (1 << 40, 1 << 39)},
        counts={("first", 0): (5, 160)},
        sources={"/src/a.cu": "text\n"},
        rules=[
            RuleSpec(identifier="A", message="m1", kind=1),
            RuleSpec(identifier="B", message="m2", kind=2),
            RuleSpec(identifier="C", message="m3", kind=3),
            RuleSpec(identifier="D", message="m4", kind=4, speedup_percent=12.5),
        ],
        call_stack=[FrameSpec(module="app", address=1, function="main")],
    )
    second = LaunchSpec(kernel="second", cubin=cubin, samples={("second", 16, "wait"): (3, 2)})
    path.write_bytes(write_report([first, second]))
    assert compare(path) > 100
    path.write_bytes(write_report([first, second], late=True))
    assert compare(path) > 100
    path.write_bytes(write_report([first, second], numbers="float", family="warp_stall", layout="loaded"))
    assert compare(path) > 100
    estimates = [rule.get("speedup_estimation") for rule in nvidia_reads(path)[0]["rules"]]
    assert estimates[-1] == {"type": 2, "speedup": 12.5}
