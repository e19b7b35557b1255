# SPDX-License-Identifier: Apache-2.0
"""Lays out other people's reports, each in a folder with the sources of its repository.

Reports are those of ``../shared/profiles`` and, where ``GPADVISOR_REPORTS`` names a folder of them, all that
``pairs.json`` names. Sources come from bare clones, ``OWNER+NAME/repo`` below ``GPADVISOR_CLONES``. What is
not at hand is said. Nothing of either is in this repository.

Writes one JSON object a line: ``name``, ``folder`` (null without the report), ``report``, ``source`` (the
file that defines the kernel, null where it is not at hand).
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from tests.validation.pairs import PAIRS, report_name

from gpadvisor.store.load import load_profile

SUFFIXES = (".cu", ".cuh", ".h", ".hpp", ".cpp", ".cc", ".c", ".inl", ".jl", ".py", ".F90")
NAMED = re.compile(rb"[\w.+&-]+(?:%s)\b" % b"|".join(re.escape(one.encode()) for one in SUFFIXES))
MOST_BYTES = 64 << 20
SHARED = ("rtx3090_gemm_naive", "a100_selfjoin_susybin3", "a40_julia_indexspaces")


def main(target: Path, *, everything: bool) -> None:
    """Lay out the three reports whose license lets everybody have them, or all."""
    profiles = PAIRS.parent
    for name, (report, repository, kernel) in _reports(profiles, everything=everything).items():
        if not report.is_file():
            _say({"name": name, "folder": None})
            continue
        folder = target / name
        source = _checkout(repository, kernel, folder, report)
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(report, folder / report.name)
        _say({"name": name, "folder": str(folder), "report": report.name, "source": source})


def _say(found: Mapping[str, str | None]) -> None:
    sys.stdout.write(f"{json.dumps(found)}\n")


def _reports(profiles: Path, *, everything: bool) -> dict[str, tuple[Path, str, str]]:
    """Report, repository and kernel by name."""
    found = {}
    index: list[dict[str, Any]] = json.loads((profiles / "index.json").read_text(encoding="utf-8"))
    for one in index:
        name = Path(one["file"]).stem
        if name in SHARED:
            kernel = max(one["kernels"], key=lambda each: each["samples"])["name"]
            found[name] = (profiles / one["file"], one["repo"], kernel)
    reports = os.environ.get("GPADVISOR_REPORTS")
    shared = {(one["repo"], one["path"]) for one in index}
    for side in _sides(json.loads(PAIRS.read_text(encoding="utf-8"))) if everything and reports else ():
        if (side["repo"], side["path"]) not in shared:
            report = Path(reports or "") / report_name(side)
            found[f"{side['repo'].partition('/')[2]}_{Path(side['path']).stem}"] = (
                report,
                side["repo"],
                side["kernel"],
            )
    return found


def _sides(pairs: list[dict[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for pair in pairs:
        yield pair["before"]
        yield pair["after"]


def _checkout(repository: str, kernel: str, folder: Path, report: Path) -> str | None:
    """Write the sources of a repository.

    Of those that the report names, else of those that define the kernel, the one that is called most like it.
    """
    clones = os.environ.get("GPADVISOR_CLONES")
    clone = Path(clones or "") / repository.replace("/", "+") / "repo"
    if not clones or not clone.is_dir():
        return None
    git = ["git", "--git-dir", str(clone)]
    listed = subprocess.run([*git, "ls-tree", "-r", "-l", "HEAD"], check=True, capture_output=True, text=True)
    rows = [line.split(None, 4) for line in listed.stdout.splitlines()]
    names = [row[4] for row in rows if row[4].endswith(SUFFIXES) and row[3].isdigit()]
    if sum(int(row[3]) for row in rows if row[4] in set(names)) > MOST_BYTES or not names:
        return None
    archive = subprocess.run([*git, "archive", "HEAD", "--", *names], check=True, capture_output=True)
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        tar.extractall(folder, filter="data")
    said = _named(report)
    named = [name for name in names if Path(name).name in said]
    defining = _defining(folder, names, kernel)
    found = [name for name in named if name in defining] or named or defining
    like = report.stem.partition("__")[2].replace("__", "/")
    return max(found, key=lambda name: SequenceMatcher(None, name, like).ratio(), default=None)


def _named(report: Path) -> set[str]:
    """The names of source files in a report, in its line tables too."""
    profile = load_profile(report)
    found = {path.replace("\\", "/").rpartition("/")[2] for path in profile.sources}
    for binary in profile.binaries.values():
        found |= {name.decode() for name in NAMED.findall(binary)}
    return found


def _defining(folder: Path, names: list[str], kernel: str) -> list[str]:
    """Files that define a kernel of this name: as CUDA, else in any other way that is at hand."""
    base = re.sub(r"<.*|\(.*|^void ", "", kernel.strip()).rpartition("::")[2].strip()
    plain = re.sub(r"_\d+(_gpu)?$", "", base)
    cuda = re.compile(rf"__global__[^;{{}}]*\b{re.escape(base)}\s*\([^;{{}}]*\{{")
    other = re.compile(rf"\b{re.escape(plain)}\s*\([^;]*\)\s*\{{")
    texts = {name: (folder / name).read_text(encoding="utf-8", errors="replace") for name in names}
    found = [name for name, text in texts.items() if cuda.search(text)]
    return found or [name for name, text in texts.items() if other.search(text)]


if __name__ == "__main__":
    main(Path(sys.argv[1]), everything="--all" in sys.argv[2:])
