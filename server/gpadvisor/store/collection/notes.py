# SPDX-License-Identifier: Apache-2.0
"""What the library noted, as sentences for the user: what stood in the way, and the next step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from gpadvisor.errors import ProfileFormatError
from gpadvisor.store.collection.layout import Stage
from gpadvisor.store.collection.process import Note, Process

# Results of CUPTI, by the numbers in cupti_result.h.
OUT_OF_MEMORY: Final = 8
NOT_COMPATIBLE: Final = 14
NOT_INITIALIZED: Final = 15
HARDWARE_BUSY: Final = 26
NOT_SUPPORTED: Final = 27
INSUFFICIENT_PRIVILEGES: Final = 35
MULTIPLE_SUBSCRIBERS: Final = 39
VIRTUALIZED_PRIVILEGES: Final = 40

_REASONS: Final = {
    OUT_OF_MEMORY: (
        "there was not enough memory on the GPU or the host for CUPTI's buffers;"
        " free memory or ask for a smaller hardware buffer"
    ),
    NOT_COMPATIBLE: "CUPTI does not do both at once; collect times in a run of their own",
    NOT_INITIALIZED: (
        "CUPTI and the driver do not fit; install the nvidia-cuda-cupti of the driver's CUDA release"
    ),
    HARDWARE_BUSY: (
        "another profiler holds the GPU's counters, such as a second run, Nsight Compute or DCGM;"
        " wait for it, or pause DCGM with dcgmi profile --pause"
    ),
    NOT_SUPPORTED: (
        "this GPU or driver has no PC sampling; it needs compute capability 7.0 (7.5 from CUDA 13 on)"
        " and a full driver"
    ),
    INSUFFICIENT_PRIVILEGES: (
        "the driver refuses performance counters to this user (as ERR_NVGPUCTRPERM in Nsight Compute);"
        " the kernel module on the host decides that, so another image, CUDA version or root inside a"
        " container cannot change it: the host's administrator can allow it"
        " (NVreg_RestrictProfilingToAdminUsers=0, or CAP_PERFMON for this process), see gpadvisor doctor"
    ),
    MULTIPLE_SUBSCRIBERS: (
        "another profiler is attached to the application, and CUPTI serves one;"
        " run without it (Nsight, PyTorch's profiler, CUDA_INJECTION64_PATH)"
    ),
    VIRTUALIZED_PRIVILEGES: (
        "profiling is switched off for this virtual GPU; the host's administrator can allow it"
    ),
    41: "confidential computing is on, and counters are off with it",
    42: "this model of GPU (CMP) does not allow profiling",
    43: "profiling is not supported on this MIG instance; use one that spans the whole GPU",
    44: "profiling is not supported with SLI; switch it off",
    45: "profiling is not supported on this WSL setup; update Windows, the driver and WSL",
}

_WHAT: Final = {
    Stage.LOAD: "nothing was collected",
    Stage.SUBSCRIBE: "nothing was collected",
    Stage.CALLBACKS: "some launches may be unseen",
    Stage.TIMES: "there are no kernel times",
    Stage.SAMPLING: "there are no PC samples",
    Stage.CONFIGURE: "there are no PC samples",
    Stage.DATA: "PC samples could not be read to the end",
    Stage.BUFFER: "the hardware buffer for PC samples was full, and samples were lost",
    Stage.KEPT: "the buffer for the last PC samples of a context was full, and some may be lost",
    Stage.MODULE: "machine code could not be stored",
    Stage.DRIVER: "CUPTI reports a fatal error of the driver",
    Stage.DROPPED: "CUPTI dropped records of kernel times",
    Stage.CONTEXT: "a further context of GPU",
    Stage.SERIAL_TIMES: (
        "kernels were run one at a time to time them: CUPTI times concurrent ones beside samples"
        " from CUDA 13.0 Update 1 on"
    ),
}
_WHAT_OF_TRACE: Final = {
    Stage.TRACE: "the timeline has no",
    Stage.ENOUGH: "the timeline ends before the run",
    Stage.TIMES: "the timeline has no kernels",
    Stage.DROPPED: "CUPTI dropped records of the timeline",
    Stage.SERIAL_TIMES: "kernels were run one at a time, so that none overlap: CUPTI refused concurrent ones",
}
"""The same where a timeline was recorded."""
TIMELINE: Final = 3
"""The mode of a process that recorded one."""
_NO_SAMPLES: Final = frozenset({Stage.LOAD, Stage.SUBSCRIBE, Stage.SAMPLING, Stage.CONFIGURE, Stage.CONTEXT})


def check_sampled(processes: Sequence[Process]) -> None:
    """ProfileFormatError where all of them were recorded for their timeline."""
    if processes and all(process.mode == TIMELINE for process in processes):
        raise ProfileFormatError(
            "it has a timeline and no samples: give it to 'gpadvisor idle', or beside a profile as --timeline"
        )


def sentence(note: Note, mode: int = 0) -> str:
    """One note of a process of some mode as a sentence without its final stop."""
    try:
        stage = Stage(note.stage)
    except ValueError:
        return f"the collector noted something that is not known here ({note.text})"
    event = _WHAT_OF_TRACE.get(stage, _WHAT.get(stage, "")) if mode == TIMELINE else _WHAT.get(stage, "")
    if stage is Stage.TRACE:
        return f"{event} {note.text}: {_REASONS.get(note.code) or f'CUPTI answers {note.code}'}"
    if stage is Stage.ENOUGH:
        number = f" ({note.code:,})" if note.code else ""
        return f"{event}: records beyond {note.text} were left out{number}; record a shorter run"
    if stage is Stage.BUFFER:
        return f"{event}; ask for a larger buffer, or for a longer period (--period)"
    if stage is Stage.DROPPED:
        return f"{event} ({note.code} or more)"
    if stage is Stage.CONTEXT:
        return f"{event} {note.code} has no PC samples: CUPTI samples one context of a GPU at a time"
    if stage in {Stage.KEPT, Stage.SERIAL_TIMES}:
        return event
    if stage in {Stage.LOAD, Stage.MODULE, Stage.DRIVER}:
        return f"{event}: {note.text}"
    reason = _REASONS.get(note.code)
    return f"{event}: {reason or f'CUPTI answers {note.text} ({note.code})'}"


def sentences(processes: Iterable[Process]) -> tuple[str, ...]:
    """Every note of all processes once."""
    noted = ((note, process.mode) for process in processes for note in _last_counts(process.notes))
    return tuple(dict.fromkeys(sentence(note, mode) for note, mode in noted))


def _last_counts(notes: Sequence[Note]) -> Iterator[Note]:
    """All notes; of records that were left out the last one, which counts them."""
    last_code = max((note.code for note in notes if note.stage == Stage.ENOUGH), default=0)
    return (note for note in notes if note.stage != Stage.ENOUGH or note.code == last_code)


def why_no_samples(process: Process) -> str | None:
    """What kept PC samples away in a process; None where nothing is known to have."""
    for note in process.notes:
        if note.stage in _NO_SAMPLES:
            return sentence(note)
    return None
