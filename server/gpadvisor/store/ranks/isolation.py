# SPDX-License-Identifier: Apache-2.0
"""Sum up foreign snapshots in a child process with limits of time and memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpadvisor.errors import ProfileError, ProfileFormatError, ToolError, UsageError
from gpadvisor.files import read_file, scratch_folder
from gpadvisor.sandbox.children import call
from gpadvisor.sandbox.codec import Failure, from_answer, to_bytes
from gpadvisor.store.ranks.members import By
from gpadvisor.store.ranks.request import SumAnswer, SumRequest

_SUMMER: Final = "gpadvisor.store.ranks.child:answer"
_RESULT: Final = "sum.gpadvisor"
_ERRORS: Final = {error.__name__: error for error in (ProfileError, ProfileFormatError, UsageError)}
_OUTPUT_BYTES: Final = 64 << 20
_RESULT_BYTES: Final = 4 << 30
_ADDRESSES: Final = 8 << 30
_SECONDS: Final = 300.0
_SECONDS_PER_FILE: Final = 0.5
MEMORY_BYTES: Final = 128 << 20
"""Of DuckDB; what does not fit goes to a temporary folder."""
PARTIAL_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSum:
    """A sum over profiles."""

    data: bytes | None  # the snapshot; None where a bad file stood in the way
    bad: dict[str, str]  # why, by name of the file
    profiles: int
    kernels: int
    numbered: bool = False  # whether ranks are the numbers at the ends of names


def sum_isolated(
    files: Sequence[tuple[Path, str]],
    *,
    by: str | None,
    merge: bool,
    keep_going: bool,
    cells: bool = False,
    memory_bytes: int,
    number: bool = True,
    cancelled: Callable[[], bool] | None = None,
) -> RankSum:
    """Add snapshots up.

    Args:
        files: paths with the names by which they are told.
        by: rank, node or name; None for rank where every name has one, else name.
        merge: take sums only.
        keep_going: leave bad files out.
        cells: keep what each profile has at each place.
        memory_bytes: of the engine.
        number: whether numbers at the ends of names may be ranks.
        cancelled: asked now and then; when true, the child is stopped.

    Raises:
        UsageError: the files cannot be told apart ``by`` that.
        ProfileError: the sums are none, or the child failed.
    """
    with scratch_folder() as folder:
        request = SumRequest(
            files=tuple((str(path.absolute()), name) for path, name in files),
            folder=str(folder),
            by=None if by is None else By(by),
            merge=merge,
            keep_going=keep_going,
            cells=cells,
            memory_bytes=memory_bytes,
            number=number,
        )
        try:
            data = call(
                _SUMMER,
                to_bytes(request),
                timeout_seconds=_SECONDS + _SECONDS_PER_FILE * len(files),
                memory_bytes=_ADDRESSES,
                output_bytes=_OUTPUT_BYTES,
                cancelled=cancelled,
                directory=folder,
            )
            return _answered(data, folder)
        except (ToolError, OSError) as error:
            raise ProfileError(
                f"the process that summed up {len(files)} profiles failed ({error}); "
                "aggregate parts with --partial, which tells the bad one from the others"
            ) from error


def _answered(data: bytes, folder: Path) -> RankSum:
    answer = from_answer(data, SumAnswer)
    if isinstance(answer, Failure):
        raise _ERRORS.get(answer.error, ProfileError)(answer.message)
    return RankSum(
        data=read_file(folder / _RESULT, max_bytes=_RESULT_BYTES) if answer.profiles else None,
        bad=answer.bad,
        profiles=answer.profiles,
        kernels=answer.kernels,
        numbered=answer.numbered,
    )
