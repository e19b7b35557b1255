# SPDX-License-Identifier: Apache-2.0
"""The doctor's examination: this machine and, where asked, the CUDA code of one application."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from gpadvisor.cubin import read_cubin
from gpadvisor.errors import CubinError, GpadvisorError, ToolError
from gpadvisor.files import scratch_folder
from gpadvisor.model.problem import ProblemCode
from gpadvisor.pipeline.line_info import line_info_change, script_line_info
from gpadvisor.profiler.doctor import Diagnosis, Situation, diagnose, observe
from gpadvisor.profiler.doctor.verdicts import Check, CheckLayer, CheckStatus
from gpadvisor.sandbox.tools import run_tool
from gpadvisor.toolchain.compile import compile_source
from gpadvisor.toolchain.discovery import find_tools

_EXTRACT_SECONDS: Final = 60.0
_INSTALL: Final = "pip install 'gpadvisor[compile]'"
_PROBED: Final = "sm_80"
_PROBE: Final = "#include <cub/version.cuh>\n#include <curand.h>\n__global__ void kernel() {}\n"
_MAX_CUBINS: Final = 200
_MAX_CUBIN_BYTES: Final = 256 << 20


def examine_machine(application: Path | None = None) -> Diagnosis:
    """Look at this machine and decide what works.

    Raises:
        GpadvisorError: the application does not exist.
    """
    situation = observe()
    if application is not None:
        situation = _with_application(situation, application)
    diagnosis = diagnose(situation)
    return replace(diagnosis, checks=(*diagnosis.checks, examine_compilers()))


def examine_compilers() -> Check:
    """Compile a kernel as any source would be, and say what sources can be compiled here."""
    with scratch_folder() as folder:
        source = folder / "probe.cu"
        source.write_text(_PROBE, encoding="utf-8")
        try:
            compiled = compile_source(source, arch=_PROBED)
        except GpadvisorError as error:
            return Check(
                name="sources",
                status=CheckStatus.WARNING,
                found=f"no source can be compiled: {error}",
                meaning="reports and snapshots open; static advice and quick fixes need a compiler",
                layer=CheckLayer.USER,
                action=_INSTALL,
            )
    missing = [problem.short for problem in compiled.problems if problem.code is ProblemCode.REDUCED_SOURCE]
    without = "".join(f", but {words}" for words in missing)
    if compiled.by_nvrtc:
        has_nvcc = any(problem.code is ProblemCode.TOOL_FALLBACK for problem in compiled.problems)
        return Check(
            name="sources",
            status=CheckStatus.NOTE,
            found=f"{compiled.compiler} compiles device code alone{without}: "
            + ("nvcc finds no C++ compiler" if has_nvcc else "no nvcc is here"),
            meaning="host code is left out; kernels that only templates of host code launch may be missing",
            layer=CheckLayer.USER,
            action="apt-get install g++" if has_nvcc else _INSTALL,
        )
    return Check(
        name="sources",
        status=CheckStatus.NOTE if missing else CheckStatus.OK,
        found=f"{compiled.compiler} with a C++ compiler{without}",
        meaning="sources that include them do not compile" if missing else "",
        layer=CheckLayer.USER if missing else None,
        action=_INSTALL if missing else "",
    )


def _with_application(situation: Situation, application: Path) -> Situation:
    if not application.is_file():
        raise GpadvisorError(f"{application} is no file; give the application whose CUDA code to look at")
    situation = replace(situation, binary=application.name, line_info_change=script_line_info(application))
    try:
        cubins = _cubins(application)
    except ToolError as error:
        return replace(situation, binary_problem=str(error))
    if not cubins or all(cubins):
        return replace(situation, binary_has_line_info=True if cubins else None)
    build_change = line_info_change(application, Path.cwd())
    return replace(
        situation,
        binary_has_line_info=False,
        line_info_command=build_change.command,
        line_info_change=build_change.change,
    )


def _cubins(application: Path) -> list[bool]:
    """For each cubin inside an application with code in it, whether it has line information."""
    tools = find_tools("cuobjdump")
    if not tools:
        raise ToolError("cuobjdump was not found; install the package nvidia-cuda-cuobjdump")
    with scratch_folder() as folder:
        # It ends with an error where there is no device code: what was written says more.
        run_tool(
            [tools[0].path, "--extract-elf", "all", application.resolve()],
            timeout_seconds=_EXTRACT_SECONDS,
            directory=folder,
            check=False,
        )
        result = []
        for path in sorted(folder.glob("*.cubin"))[:_MAX_CUBINS]:
            if path.is_symlink() or path.stat().st_size > _MAX_CUBIN_BYTES:
                continue
            try:
                cubin = read_cubin(path.read_bytes())
            except CubinError:
                continue
            if cubin.sections:
                result.append(cubin.has_line_info)
    return result
