# SPDX-License-Identifier: Apache-2.0
"""What one copy of Nsight Compute can do: its version, and the options that its own help lists.

Options were renamed over the years (``--sampling-interval`` became ``--warp-sampling-interval``); the help of
the copy at hand decides, never a table of versions.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpadvisor.errors import ToolError, ToolFailedError, ToolNotFoundError
from gpadvisor.sandbox.tools import run_tool
from gpadvisor.toolchain.discovery import toolkit_folders

_QUESTION_SECONDS: Final = 30.0
_MEMORY_BYTES: Final = 16 << 30
_VERSION: Final = re.compile(r"\bVersion (20\d\d)\.(\d+)(?:\.(\d+))?")
_OPTION: Final = re.compile(r"(?<![\w-])--([a-z][a-z0-9-]+)")
OLDEST: Final = (2020, 1)
"""Before, the program was called nv-nsight-cu-cli and took other options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """One copy of ncu."""

    path: Path
    version: tuple[int, ...]
    options: frozenset[str]  # without the dashes

    def __str__(self) -> str:
        """The name and version, as messages show them."""
        return f"ncu {'.'.join(map(str, self.version))}"

    def first(self, *names: str) -> str | None:
        """The first of several names of one option that this copy knows."""
        return next((f"--{name}" for name in names if name in self.options), None)


def find_ncu(explicit: Path | None = None) -> Abilities:
    """The copy to use: the one asked for, else on PATH, in the toolkit, in /opt; the newest that answers.

    Raises:
        ToolNotFoundError: there is none, or the one asked for does not answer.
    """
    refused = []
    for path in _candidates(explicit):
        try:
            return examine_ncu(path)
        except ToolError as error:
            if explicit is not None:
                raise ToolNotFoundError(f"{path} is no working ncu: {error}") from error
            refused.append(str(path))
    tried = f" ({', '.join(refused[:3])} did not answer)" if refused else ""
    raise ToolNotFoundError(
        f"Nsight Compute was not found on PATH, in the CUDA toolkit or in /opt{tried}; install the package "
        "nsight-compute of your CUDA release, or use --collector cupti"
    )


def examine_ncu(path: Path) -> Abilities:
    """Version and options of one copy on this machine.

    Raises:
        ToolError: it does not answer as ncu does, or is too old.
    """
    return abilities_of(path, lambda option: _ask(path, option))


def abilities_of(path: Path, ask: Callable[[str], str]) -> Abilities:
    """Version and options of the copy at ``path``, which may be on another machine; ``ask`` runs it there.

    Raises:
        ToolError: it does not answer as ncu does, or is too old.
    """
    match = _VERSION.search(ask("--version"))
    if match is None:
        raise ToolFailedError(f"{path} --version does not answer as Nsight Compute does")
    version = tuple(int(part) for part in match.groups() if part is not None)
    if version < OLDEST:
        raise ToolFailedError(
            f"{path} is Nsight Compute {'.'.join(map(str, version))}; gpadvisor drives 2020.1 and newer, "
            "and reads the reports of older ones"
        )
    options = frozenset(_OPTION.findall(ask("--help")))
    if not {"export", "section"} <= options:
        raise ToolFailedError(f"{path} --help does not list the options of Nsight Compute")
    return Abilities(path=path, version=version, options=options)


def _ask(path: Path, option: str) -> str:
    output = run_tool([path, option], timeout_seconds=_QUESTION_SECONDS, memory_bytes=_MEMORY_BYTES)
    return output.stdout.decode("utf-8", "replace")


def _candidates(explicit: Path | None) -> Iterator[Path]:
    if explicit is not None:
        yield explicit
        return
    paths: set[Path] = set()
    for path in _places():
        if path.is_file() and os.access(path, os.X_OK) and (real := path.resolve()) not in paths:
            paths.add(real)
            yield path


def _places() -> Iterator[Path]:
    setting = os.environ.get("GPADVISOR_NCU")
    if setting:
        yield Path(setting)
    on_path = shutil.which("ncu")
    if on_path is not None:
        yield Path(on_path)
    for folder in toolkit_folders():
        yield folder / "ncu"
    for root in (Path("/opt/nvidia/nsight-compute"), Path("/usr/local/NVIDIA-Nsight-Compute")):
        yield from sorted((folder / "ncu" for folder in root.glob("*")), key=_release, reverse=True)


def _release(path: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", path.parent.name))
