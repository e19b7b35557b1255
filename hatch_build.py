# SPDX-License-Identifier: Apache-2.0
"""Compiles modules of the wheel by mypyc, from the same sources, where GPADVISOR_COMPILED asks for that."""

from __future__ import annotations

import contextlib
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

OPTIMIZATION = "0" if os.environ.get("GPADVISOR_COMPILED") == "unoptimized" else "1"
"""What level 2 adds to the time of compiling it does not take from that of the advice.

Level 0 is for tests, which take less time than level 1 adds.
"""

_FOLDER = Path("build", "compiled")


class CompiledModules(BuildHookInterface):
    """The modules that ``modules`` names in pyproject.toml; without the variable the wheel has none."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """What the build needs: nothing for the pure wheel."""
        return ["mypy>=2.4,<3", "setuptools>=80", "numpy", "demangle>=0.6,<1"] if _wanted() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and put the results beside their sources."""
        if version == "editable" or not _wanted():
            return
        with contextlib.chdir(self.root):
            shutil.rmtree(_FOLDER, ignore_errors=True)
            _FOLDER.mkdir(parents=True)
            files = [
                os.fspath(file) for pattern in self.config["modules"] for file in sorted(Path().glob(pattern))
            ]
            build_data["force_include"].update(_compiled(files))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True


def _wanted() -> bool:
    return os.environ.get("GPADVISOR_COMPILED", "0") not in {"", "0"}


def _compiled(files: list[str]) -> dict[str, str]:
    """The libraries, with their places in the wheel."""
    from mypyc.build import mypycify  # noqa: PLC0415 the pure wheel is built without it
    from setuptools.command.build_ext import build_ext  # noqa: PLC0415 as mypyc above
    from setuptools.dist import Distribution  # noqa: PLC0415 as mypyc above

    extensions = mypycify(
        [f"--cache-dir={_FOLDER / 'types'}", *files],
        opt_level=OPTIMIZATION,
        debug_level="0",
        multi_file=True,
        group_name="gpadvisor",
        target_dir=os.fspath(_FOLDER),
    )
    command = build_ext(Distribution({"ext_modules": extensions}))
    command.build_lib, command.build_temp = str(_FOLDER / "lib"), str(_FOLDER / "objects")
    command.ensure_finalized()
    _in_parallel(command)
    command.run()
    return {command.get_ext_fullpath(one.name): command.get_ext_filename(one.name) for one in extensions}


def _in_parallel(command: Any) -> None:
    """Compile the files of a library on all processors; setuptools does one after the other."""
    build = command.build_extensions

    def build_extensions() -> None:
        compiler = command.compiler
        one_by_one = compiler.compile

        def compile_all(sources: list[str], **options: Any) -> list[str]:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                objects = pool.map(lambda source: one_by_one([source], **options), sources)
                return [path for paths in objects for path in paths]

        compiler.compile = compile_all
        build()

    command.build_extensions = build_extensions
