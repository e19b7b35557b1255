# SPDX-License-Identifier: Apache-2.0
"""The outer form of an Nsight Compute report: blocks of messages, and the zstd container around them.

The layout is that of "Report File Format" in NVIDIA's Customization Guide: magic, file header, then blocks of
header and payload, a payload being a sequence of messages that each follow their own length.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from gpadvisor.errors import ProfileFormatError
from gpadvisor.store.ncu import wire

MAGIC: Final = b"NVR\x00"
ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
MAX_REPORT_BYTES: Final = 4 << 30  # a payload size is a 32-bit number, and larger reports were not seen
OTHER_RESULTS: Final = {7: "range", 8: "command list", 9: "CUDA graph"}
"""Fields of a block's header that count results behind those of launches, by what was measured as a whole."""
KNOWN_VERSION: Final = 7  # of the file format, the same from 2019 to 2026
_SKIPPABLE: Final = range(0x184D2A50, 0x184D2A60)
_ROOM: Final = 64 << 20  # what any container may unpack to; beyond that, so many times its size
_MAX_RATIO: Final = 500
_MAX_EMPTY_BLOCKS: Final = 1000  # a file whose rest was never written is zeros
_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class ReportBlock:
    """One block: its header, and its messages by kind, as views of the report."""

    header: wire.Fields
    sources: tuple[memoryview, ...]
    results: tuple[memoryview, ...]


def damaged(detail: str) -> ProfileFormatError:
    """The error for a report whose bytes contradict each other."""
    return ProfileFormatError(
        f"the Nsight Compute report is damaged or cut short ({detail}); copy or collect it again"
    )


def is_compressed(data: bytes) -> bool:
    """Whether a zstd frame, or a skippable frame that may precede one, starts here."""
    return data[:4] == ZSTD_MAGIC or (len(data) >= 8 and int.from_bytes(data[:4], "little") in _SKIPPABLE)


def decompress(data: bytes, limit: int | None = None) -> bytes:
    """The content of a zstd container (``.ncu-repz``): all its frames, at most ``limit`` bytes."""
    if limit is None:
        limit = min(MAX_REPORT_BYTES, _ROOM + _MAX_RATIO * len(data))
    pieces: list[bytes] = []
    size = index = 0
    while index < len(data):
        if int.from_bytes(data[index : index + 4], "little") in _SKIPPABLE:
            index += 8 + int.from_bytes(data[index + 4 : index + 8], "little")
            continue
        if data[index : index + 4] != ZSTD_MAGIC:
            raise damaged("its compressed container holds something else than zstd frames")
        index, frame = _frame(data, index, limit - size)
        size += sum(len(piece) for piece in frame)
        pieces += frame
    return b"".join(pieces)


def _frame(data: bytes, index: int, room: int) -> tuple[int, list[bytes]]:
    import zstandard  # noqa: PLC0415 few reports are compressed

    decoder = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj()
    pieces: list[bytes] = []
    size = 0
    while index < len(data) and not decoder.eof:
        chunk = data[index : index + (_CHUNK >> 6)]
        index += len(chunk)
        try:
            piece = decoder.decompress(chunk)
        except zstandard.ZstdError as error:
            raise damaged("its zstd container cannot be decompressed") from error
        size += len(piece)
        if size > room:
            raise ProfileFormatError(
                "the compressed report unpacks to far more than a report of its size should; copy it again"
                " or collect fewer kernels (ncu --launch-count)"
            )
        pieces.append(piece)
    if not decoder.eof:
        raise damaged("its zstd container ends in the middle of a frame")
    return index - len(decoder.unused_data), pieces


def format_version(data: bytes) -> int | None:
    """The version that the file header states, or None where there is no readable header."""
    try:
        return wire.integer(wire.parse(_sized(data, 4, "file header")[0]), 1)
    except (ProfileFormatError, wire.WireError):
        return None


def blocks(data: bytes) -> Iterator[ReportBlock]:
    """The blocks of a report in file order."""
    if data[:4] != MAGIC:
        raise damaged("it does not start with the report's magic number")
    _, index = _sized(data, 4, "file header")
    if format_version(data) is None:
        raise damaged("its file header states no version")
    empty = 0
    while index < len(data):
        encoded, index = _sized(data, index, "block header")
        empty = 0 if encoded else empty + 1
        if empty > _MAX_EMPTY_BLOCKS:
            raise damaged(f"more than {_MAX_EMPTY_BLOCKS} empty blocks follow each other")
        fields = wire.parse(encoded)
        size = wire.integer(fields, 5) or 0
        if size > len(data) - index:
            raise damaged(f"a block of {size} bytes starts where {len(data) - index} are left")
        payload, index = memoryview(data)[index : index + size], index + size
        yield _block(fields, payload)


def _block(header: wire.Fields, payload: memoryview) -> ReportBlock:
    messages: list[memoryview] = []
    index = 0
    while index < len(payload):
        message, index = _sized(payload, index, "message")
        messages.append(message)
    sources = wire.integer(header, 1) or 0
    results = wire.integer(header, 2) or 0
    if sources + results > len(messages):
        raise damaged(f"a block announces {sources + results} messages and holds {len(messages)}")
    return ReportBlock(
        header=header,
        sources=tuple(messages[:sources]),
        results=tuple(messages[sources : sources + results]),
    )


def _sized(data: wire.Data, index: int, text: str) -> tuple[wire.Data, int]:
    if index + 4 > len(data):
        raise damaged(f"a {text} is missing at its end")
    size = int.from_bytes(data[index : index + 4], "little")
    index += 4
    if size > len(data) - index:
        raise damaged(f"a {text} of {size} bytes starts where {len(data) - index} are left")
    return data[index : index + size], index + size
