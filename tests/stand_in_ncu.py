# SPDX-License-Identifier: Apache-2.0
"""A program that behaves as Nsight Compute was seen to behave: its options, its log, its refusals.

The texts are those that users quote in public bug reports; the options those that the manuals list.
"""

from __future__ import annotations

from pathlib import Path

from tests.tools import program

OPTIONS_2020 = (
    "help", "version", "check-exit-code", "target-processes", "kernel-regex", "kernel-regex-base",
    "kernel-id", "launch-count", "launch-skip", "set", "section", "section-folder", "apply-rules", "metrics",
    "sampling-interval", "sampling-max-passes", "sampling-buffer-size", "clock-control", "cache-control",
    "log-file", "export", "force-overwrite", "import", "csv", "page",
)  # fmt: skip
OPTIONS_2022 = (
    *(name for name in OPTIONS_2020 if not name.startswith("kernel-regex")),
    "kernel-name", "kernel-name-base", "config-file", "config-file-path", "import-source", "source-folders",
    "replay-mode", "nvtx",
)  # fmt: skip
OPTIONS_2024 = (
    *(name for name in OPTIONS_2022 if not name.startswith("sampling-")),
    "warp-sampling-interval", "warp-sampling-max-passes", "warp-sampling-buffer-size",
    "pm-sampling-interval", "filter-mode", "call-stack", "graph-profiling",
)  # fmt: skip
OPTIONS_2026 = (*OPTIONS_2024, "null-stdin", "forward-signals", "communicator", "rename-kernels")
RELEASES = {
    "2020.3.1.0": OPTIONS_2020,
    "2022.2.0.0": OPTIONS_2022,
    "2024.1.1.0": OPTIONS_2024,
    "2026.1.0.0": OPTIONS_2026,
    "2026.3.1.0": OPTIONS_2026,
}

PERMISSION = (
    "ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the "
    "target device 0. For instructions on enabling permissions and to get more information see "
    "https://developer.nvidia.com/ERR_NVGPUCTRPERM"
)
BUSY = (
    "Profiling failed because a driver resource was unavailable. Ensure that no other tool (like DCGM) is "
    "concurrently collecting profiling data. See "
    "https://docs.nvidia.com/nsight-compute/ProfilingGuide/index.html#faq for more details."
)
CLOCKS = "Cannot lock GPU clock frequencies on MIG! Try locking the clocks externally"
CRASHED = "The application returned an error code (11)."
UNKNOWN = "Unknown Error on device 0."

_BODY = """
RELEASE, OPTIONS, REPORT, ERRORS, WARNINGS, LAUNCHES, NEEDS_COUNTERS, RECORD, SUFFIX = {values!r}
arguments = sys.argv[1:]
if arguments == ["--version"]:
    print("NVIDIA (R) Nsight Compute Command Line Profiler")
    print("Copyright (c) 2018-2026 NVIDIA Corporation")
    print("Version " + RELEASE + " (build 33998838) (public-release)")
    sys.exit()
if arguments == ["--help"]:
    print("usage: ncu [options] [program] [program-arguments]")
    for option in OPTIONS:
        print("  --" + option + " arg")
    sys.exit()
chosen, index = {{}}, 0
while index < len(arguments) and arguments[index].startswith("--"):
    name = arguments[index][2:]
    if name not in OPTIONS:
        sys.exit("==ERROR== unrecognised option '--" + name + "'. Use --help for further details.")
    takes_value = name != "force-overwrite"
    chosen.setdefault(name, []).append(arguments[index + 1] if takes_value else "")
    index += 2 if takes_value else 1
application = arguments[index:]
if RECORD:
    with open(RECORD, "a") as record:
        record.write(repr(arguments) + "\\n")
log = open(chosen["log-file"][0], "w", buffering=1)
counters = "SourceCounters" in chosen.get("section", []) or "pcsamp" in str(chosen.get("metrics"))
signal.signal(signal.SIGINT, lambda *_: None)
signal.signal(signal.SIGTERM, lambda *_: None)
try:
    child = subprocess.Popen(application)
except OSError:
    log.write("==ERROR== Failed to launch: " + application[0] + "\\n")
    sys.exit(1)
log.write("==PROF== Connected to process " + str(child.pid) + " (" + application[0] + ")\\n")
refused = NEEDS_COUNTERS and counters
if refused:
    log.write("==ERROR== " + NEEDS_COUNTERS + "\\n")
for number in range(0 if refused else LAUNCHES):
    log.write('==PROF== Profiling "stencil" - ' + str(number) + ": 0%")
    time.sleep(0.02)
    log.write("....50%....100% - 9 passes\\n")
for text in ERRORS:
    log.write("==ERROR== " + text + "\\n")
for text in WARNINGS:
    log.write("==WARNING== " + text + "\\n")
status = child.wait()
log.write("==PROF== Disconnected from process " + str(child.pid) + "\\n")
if status:
    log.write("==ERROR== The application returned an error code (" + str(abs(status)) + ").\\n")
if REPORT and LAUNCHES and not refused:
    target = chosen["export"][0]
    if not target.endswith((".ncu-rep", ".ncu-repz")):
        target += ".ncu-repz" if RELEASE >= "2026.3" else ".ncu-rep"
    target += SUFFIX
    with open(REPORT, "rb") as source, open(target, "wb") as copy:
        copy.write(source.read())
    log.write("==PROF== Report: " + target + "\\n")
else:
    log.write("==WARNING== No kernels were profiled.\\n")
sys.exit(1 if refused or ERRORS else 0)
"""


def stand_in_ncu(
    path: Path,
    *,
    release: str = "2024.1.1.0",
    report: Path | None = None,
    errors: tuple[str, ...] = (),
    warnings: tuple[str, ...] = (),
    launches: int = 2,
    refuses_counters: str = "",
    record: Path | None = None,
    suffix: str = "",
) -> Path:
    """A copy of ncu of one release.

    ``report`` is what it leaves behind, ``refuses_counters`` the error where counters are asked for, and
    ``record`` a file to which each command line is added; ``suffix`` comes behind the report's name.
    """
    values = (
        release,
        RELEASES[release],
        None if report is None else str(report),
        errors,
        warnings,
        launches,
        refuses_counters,
        None if record is None else str(record),
        suffix,
    )
    return program(path, _BODY.format(values=values))
