# SPDX-License-Identifier: Apache-2.0
"""How many sources of other people compile as they are, and those that do not with the flags of their build.

``python -m tests.validation.sources FOLDER...`` takes folders (``--flags``, ``--count``, ``--arch``).
Without one it takes the two sets that ``docs/validation-use.md`` tells about from GPADVISOR_MIRRORS, a folder
of bare repositories named OWNER+NAME, and says that it is skipped where that is not set.
``--without-host-compiler`` compiles by NVRTC alone. ``--keep FOLDER`` keeps sources and outcomes, so that a
run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from gpadvisor.cubin import read_cubin
from gpadvisor.errors import GpadvisorError, NoDeviceCodeError, ToolTimeoutError
from gpadvisor.pipeline.programs import kernel_sections
from gpadvisor.pipeline.request import Request
from gpadvisor.pipeline.settings import Settings
from gpadvisor.pipeline.units import compile_file
from gpadvisor.toolchain import compile as compiling
from gpadvisor.toolchain.compiler_messages import CompileError

BLOB_BYTES = 1 << 20
TIME_LIMIT = 600.0
SUFFIXES = (".cu", ".cuh", ".h", ".hh", ".hpp", ".hxx", ".inl", ".inc", ".cc", ".cpp", ".cxx", ".c", "")


@dataclass(frozen=True, slots=True)
class Project:
    """A repository, how many of its sources are taken, and the flags that its own build has for them."""

    repository: str
    count: int
    below: str = ""
    flags: tuple[str, ...] = ()


THIRTY_SIX = (
    Project("NVIDIA/cuda-samples", 14, flags=("-ICommon",)),
    Project("yuhc/gpu-rodinia", 12, "cuda"),
    Project("karpathy/llm.c", 10),
)
UNITS = (
    Project("NVIDIA/cuda-samples", 24, flags=("-ICommon",)),
    Project("yuhc/gpu-rodinia", 14, "cuda"),
    Project("karpathy/llm.c", 10),
    Project("facebookresearch/faiss", 16, flags=("-I.", "-std=c++17", "--expt-extended-lambda")),
    Project("ggml-org/ggml", 16, "src/ggml-cuda", ("-Iinclude", "-Isrc", "-std=c++17", "-extended-lambda")),
    Project(
        "NVIDIA/cutlass",
        16,
        "examples",
        ("-Iinclude", "-Itools/util/include", "-Iexamples/common", "-std=c++17", "--expt-relaxed-constexpr"),
    ),
    Project("zjin-lcf/HeCBench", 10, "src"),
    Project(
        "NVIDIA/FasterTransformer",
        8,
        "src/fastertransformer/kernels",
        ("-I.", "-std=c++17", "-DENABLE_BF16", "-DENABLE_FP8"),
    ),
    Project(
        "Dao-AILab/flash-attention", 4, "csrc/flash_attn/src", ("-std=c++17", "--expt-relaxed-constexpr")
    ),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one source."""

    source: Path
    kernels: int  # -1 where it does not compile
    reason: str  # in a few words, why not
    detail: str
    seconds: float


def main(words: Sequence[str]) -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--flags", default="", help="of the sources in the folders")
    parser.add_argument(
        "--count", type=int, default=1_000_000, help="at most so many of a folder, evenly spread"
    )
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--set", choices=("36", "118", "both"), default="both")
    parser.add_argument("--without-host-compiler", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--keep", type=Path, help="a folder for sources and outcomes, which are not taken again"
    )
    asked = parser.parse_args(words)
    if asked.keep:
        asked.keep.mkdir(parents=True, exist_ok=True)
    if asked.without_host_compiler:
        setattr(compiling, "find_tools", lambda *_, **__: ())  # noqa: B010  # as if there were none
    if asked.folders:
        sources = [source for folder in asked.folders for source in spread(folder, asked.count)]
        compare("sources", [(source, tuple(asked.flags.split())) for source in sources], asked)
        return 0
    mirrors = os.environ.get("GPADVISOR_MIRRORS")
    if not mirrors:
        sys.stdout.write("skipped: GPADVISOR_MIRRORS is not set, a folder of bare repositories OWNER+NAME\n")
        return 0
    kept = contextlib.nullcontext(str(asked.keep.resolve())) if asked.keep else None
    with kept or tempfile.TemporaryDirectory(prefix="sources-") as folder:
        for name, projects in (("36", THIRTY_SIX), ("118", UNITS)):
            if asked.set in {name, "both"}:
                compare(name, list(chosen(projects, Path(mirrors), Path(folder))), asked)
    return 0


def chosen(
    projects: Sequence[Project], mirrors: Path, folder: Path
) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Sources of the mirrors with the flags of their build; a mirror that is not there is named."""
    for project in projects:
        mirror = mirrors / project.repository.replace("/", "+") / "repo"
        if not mirror.is_dir():
            sys.stdout.write(f"skipped: {project.repository} is not in {mirrors}\n")
            continue
        root = folder / project.repository
        if not root.exists():
            check_out(mirror, root)
        flags = tuple(f"-I{root / flag[2:]}" if flag.startswith("-I") else flag for flag in project.flags)
        for source in spread(root / project.below, project.count):
            yield source, flags


def check_out(mirror: Path, root: Path) -> None:
    """The sources of a bare repository; a mirror may lack its largest files."""
    git = ["git", "--git-dir", str(mirror)]
    listed = subprocess.run([*git, "ls-tree", "-r", "-z", "HEAD"], capture_output=True, check=True).stdout
    blobs = [
        (path, about.split()[2])
        for entry in listed.decode("utf-8", "surrogateescape").split("\0")
        if entry and (about := entry.partition("\t")[0]).split()[1] == "blob"
        for path in (entry.partition("\t")[2],)
        if Path(path).suffix in SUFFIXES
    ]
    asked = "".join(f"{name}\n" for _, name in blobs).encode()
    found = subprocess.run([*git, "cat-file", "--batch"], input=asked, capture_output=True, check=True).stdout
    at = 0
    (root / ".git").mkdir(parents=True)
    for path, _ in blobs:
        end = found.index(b"\n", at)
        head = found[at:end].split()
        at = end + 1
        if head[-1] == b"missing":
            continue
        size = int(head[2])
        if size <= BLOB_BYTES:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(found[at : at + size])
        at += size + 1


def spread(folder: Path, count: int) -> list[Path]:
    """So many sources of a folder, evenly over their names."""
    every = sorted(folder.rglob("*.cu"))
    return every if len(every) <= count else [every[i * len(every) // count] for i in range(count)]


def compare(name: str, sources: Sequence[tuple[Path, tuple[str, ...]]], asked: argparse.Namespace) -> None:
    """Compile every source, then those that do not compile with their flags, and print the figures."""
    without = attempts([(source, ()) for source, _ in sources], asked)
    show(f"{name}, without flags", without)
    again = {source: flags for source, flags in sources if flags}
    again = {one.source: again[one.source] for one in without if one.kernels < 0 and one.source in again}
    if again:
        flagged = {one.source: one for one in attempts(list(again.items()), asked)}
        show(f"{name}, those that do not with flags", [flagged.get(one.source, one) for one in without])


def attempts(sources: Sequence[tuple[Path, tuple[str, ...]]], asked: argparse.Namespace) -> list[Outcome]:
    """Compile sources with flags, several at a time; what is kept of an earlier run is not compiled again."""
    record = asked.keep / f"outcomes-{asked.arch}.jsonl" if asked.keep else None
    known = {}
    if record is not None and record.exists():
        for line in record.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            outcome = Outcome(
                Path(row["source"]), row["kernels"], row["reason"], row["detail"], row["seconds"]
            )
            known[row["source"], tuple(row["flags"])] = outcome

    def taken(source: Path, flags: tuple[str, ...]) -> Outcome:
        outcome = known.get((str(source), flags))
        if outcome is None:
            outcome = attempt(source, flags, asked.arch)
            if record is not None:
                with record.open("a", encoding="utf-8") as kept:
                    row = {**asdict(outcome), "source": str(source), "flags": flags}
                    kept.write(f"{json.dumps(row)}\n")
        return outcome

    with ThreadPoolExecutor(asked.jobs) as pool:
        places, flags = zip(*sources, strict=True)
        return list(pool.map(taken, places, flags))


def attempt(source: Path, flags: tuple[str, ...], arch: str) -> Outcome:
    """Compile one source."""
    begun = time.monotonic()
    try:
        settings = Settings(arch=arch, flags=flags, tool_timeout_seconds=TIME_LIMIT)
        made, _ = compile_file(source, Request(settings=settings), lambda _: None)
        kernels, reason = len(kernel_sections(read_cubin(made.cubin))), ""
        detail = "; ".join(problem.message for problem in made.problems)
    except NoDeviceCodeError as error:
        kernels, reason, detail = 0, "", str(error)
    except GpadvisorError as error:
        kernels, reason, detail = -1, reason_of(error), str(error)
    outcome = Outcome(source, kernels, reason, detail, time.monotonic() - begun)
    sys.stderr.write(f"{outcome.seconds:6.1f} s {outcome.kernels:5} {source}: {outcome.detail[:400]}\n")
    return outcome


def reason_of(error: GpadvisorError) -> str:
    """Why a source does not compile, in a few words."""
    if isinstance(error, ToolTimeoutError):
        return "time limit"
    if not isinstance(error, CompileError):
        return type(error).__name__
    missing = [message.missing_header for message in error.messages if message.missing_header]
    return f"device code needs {missing[0]}" if missing else "an error in device code"


def show(title: str, outcomes: Sequence[Outcome]) -> None:
    """The figures of one run."""
    fine = [one for one in outcomes if one.kernels >= 0]
    sys.stdout.write(f"{title}: {len(fine)} of {len(outcomes)} compile")
    sys.stdout.write(f", {sum(one.kernels == 0 for one in fine)} of them without a kernel\n")
    for reason, count in Counter(one.reason for one in outcomes if one.kernels < 0).most_common():
        sys.stdout.write(f"  {count:3}  {reason}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
