# SPDX-License-Identifier: Apache-2.0
"""Modelled profiles of whole files: each kernel by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpadvisor.cli import main
from gpadvisor.errors import UsageError
from gpadvisor.model.problem import ProblemCode
from gpadvisor.model.profile import Evidence
from gpadvisor.pipeline.analyse import analyse_file
from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.launches import StatedLaunch
from gpadvisor.pipeline.modelled import simulate_file
from gpadvisor.pipeline.request import Request
from gpadvisor.pipeline.settings import Settings
from gpadvisor.pipeline.sources.launches import SourceLaunch, launch_of
from gpadvisor.store.load import load_profile

pytestmark = [pytest.mark.toolkit, pytest.mark.nvdisasm, pytest.mark.usefixtures("reads_here")]

_BOUNDED = """
extern "C" __global__ void __launch_bounds__(128) small(float* x) { x[threadIdx.x] += 1.0f; }
"""
_FREE = """
extern "C" __global__ void any(float* x) { x[threadIdx.x] *= 2.0f; }
"""


def _request(block: int) -> Request:
    stated = StatedLaunch(grid=(4, 1, 1), block=(block, 1, 1))
    return Request(settings=Settings(), model=True, stated=stated)


def test_a_kernel_whose_bounds_forbid_the_block_does_not_fail_the_others(tmp_path: Path) -> None:
    source = tmp_path / "two.cu"
    source.write_text(_BOUNDED + _FREE)
    analysis = analyse_file(source, _request(256), lambda _: None, Cache(None))
    kernels = {kernel.context.kernel: kernel for kernel in analysis.kernels}
    assert kernels["any"].context.evidence is Evidence.MODELLED
    assert kernels["small"].context.evidence is Evidence.STATIC
    (problem,) = kernels["small"].problems
    assert problem.code is ProblemCode.FAILED_LAUNCH
    assert problem.message.startswith("small: the launch cannot run")
    assert "launch bounds allow 128" in problem.message

    target = tmp_path / "two.gpadvisor"
    simulated = simulate_file(source, target, _request(256), lambda _: None, Cache(None))
    assert [name for name, _ in simulated.kernels] == ["any"]
    assert any("small" in problem.message for problem in simulated.problems)
    assert [kernel.launch.kernel for kernel in load_profile(target).kernels] == ["any"]


def test_a_kernel_of_which_no_launch_is_known_is_told_where_another_is_simulated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "two.cu"
    source.write_text(
        _BOUNDED + _FREE + "void run(float* x, int n) { small<<<4, 128>>>(x); any<<<n, 128>>>(x); }"
    )
    assert main(["advise", str(source), "--model", "--no-cache"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "Not simulated (any), since no launch is known: --kernel NAME with --grid and --block states one."
        in said
    )


def test_where_no_kernel_can_run_the_reason_is_the_error(tmp_path: Path) -> None:
    source = tmp_path / "one.cu"
    source.write_text(_BOUNDED)
    with pytest.raises(UsageError, match="launch bounds allow 128"):
        analyse_file(source, _request(256), lambda _: None, Cache(None))


_HOST = """
#ifndef __CUDACC_RTC__
#include "sizes.h"
void run(float* x, int n) {
    const int threads = 2 * HALF;
    any<<<(1000 + threads - 1) / threads, threads>>>(x);
    small<<<n, 64>>>(x);
}
#endif
"""


def test_launches_that_the_source_writes_with_constants_need_not_be_stated(tmp_path: Path) -> None:
    (tmp_path / "sizes.h").write_text("#define HALF 64\n")
    source = tmp_path / "two.cu"
    source.write_text(_BOUNDED + _FREE + _HOST)
    request = Request(settings=Settings(), model=True)
    analysis = analyse_file(source, request, lambda _: None, Cache(None))
    kernels = {kernel.context.kernel: kernel for kernel in analysis.kernels}
    profile = kernels["any"].context.profile
    assert profile is not None
    assert (profile.launch.grid, profile.launch.block) == ((8, 1, 1), (128, 1, 1))
    assert "launched as two.cu:10 does" in [problem.message for problem in kernels["any"].problems]
    # Its grid is a parameter of the host's function: that is asked for by name.
    assert kernels["small"].context.profile is None
    assert any("where n is not constant" in problem.message for problem in kernels["small"].problems)
    launches = {"a::small": SourceLaunch(stated=StatedLaunch(), place="two.cu:4", unknown=())}
    assert launch_of("_ZN1c1a5smallEPf", launches)
    assert launch_of("_ZN1a12_GLOBAL__N_15smallIiEEvPf", launches)
    assert launch_of("_ZN1b5smallEPf", launches) is None  # another one of the same name
    launch = SourceLaunch(stated=StatedLaunch(), place="two.cu:11", unknown=("m", "n"))
    assert launch.origin == "launched as two.cu:11 does, where m and n are not constant"

    source.write_text(_BOUNDED + _HOST.replace("any<<<", "//"))
    with pytest.raises(UsageError, match=r"where n is not constant.*give --grid and --block"):
        analyse_file(source, request, lambda _: None, Cache(None))
