# SPDX-License-Identifier: Apache-2.0
"""The layout of collection files, as ``profiler/cupti/native/format.h`` writes them."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final

import numpy as np

SEGMENT_MAGIC: Final = b"\xffGPASEG1"
VERSION: Final = 1
BYTE_ORDER: Final = 0x01020304
UNIT_BYTES: Final = 65536
MARK: Final = 0xA5C3


class RecordKind(IntEnum):
    """Kinds of record."""

    PROCESS = 1
    NOTE = 2
    DEVICE = 3
    CONTEXT = 4
    REASONS = 5
    MODULE = 6
    NAME = 7
    LAUNCH = 8
    FAILED = 9
    KERNEL = 10
    PATH = 11
    FRAME = 12
    SYMBOL = 13
    SAMPLES = 14
    CALLER = 15
    COPY = 16
    CALL = 17


class Stage(IntEnum):
    """What the library was doing when it took a note."""

    LOAD = 1
    SUBSCRIBE = 2
    CALLBACKS = 3
    TIMES = 4
    SAMPLING = 5
    CONFIGURE = 6
    DATA = 7
    BUFFER = 8
    MODULE = 9
    DRIVER = 10
    DROPPED = 11
    CONTEXT = 12
    KEPT = 13
    SERIAL_TIMES = 14
    TRACE = 15
    ENOUGH = 16


FILE_HEADER: Final = struct.Struct("<8s6I5Q")  # up to the live counters, lost records the last of them
SEGMENT_HEADER: Final = struct.Struct("<8s2I")
RECORD_HEADER: Final = struct.Struct("<I2H2I")

PROCESS: Final = struct.Struct("<2I3Q8I")
NOTE: Final = struct.Struct("<IiII")
DEVICE: Final = struct.Struct("<12I")
CONTEXT: Final = struct.Struct("<4IQiI")
REASONS: Final = struct.Struct("<2I")
MODULE: Final = struct.Struct("<2I2Q32s")
NAME: Final = struct.Struct("<Q")
FAILED: Final = struct.Struct("<Ii")
PATH: Final = struct.Struct("<Q2I")
FRAME: Final = struct.Struct("<3Q2I")
SYMBOL: Final = struct.Struct("<4Q")
SAMPLES: Final = struct.Struct("<2I4Q2I")
LAUNCH: Final = struct.Struct("<4I5Q8I")
KERNEL: Final = np.dtype(
    [
        ("correlation", "<u4"),
        ("device", "<u4"),
        ("context", "<u4"),
        ("stream", "<u4"),
        ("start_ns", "<u8"),
        ("end_ns", "<u8"),
        ("name", "<u8"),
        ("graph_node", "<u8"),
        ("graph", "<u4"),
        ("registers", "<u4"),
        ("grid", "<u4", 3),
        ("block", "<u4", 3),
        ("cluster", "<u4", 3),
        ("static_shared", "<u4"),
        ("dynamic_shared", "<u4"),
        ("shared_executed", "<u4"),
        ("local_per_thread", "<u4"),
        ("reserved", "<u4"),
    ]
)
COPY: Final = struct.Struct("<4I3Q4I")
CALLER: Final = np.dtype([("correlation", "<u4"), ("reserved", "<u4"), ("path", "<u8")])
CALL: Final = np.dtype(
    [
        ("correlation", "<u4"),
        ("thread", "<u4"),
        ("start_ns", "<u8"),
        ("end_ns", "<u8"),
        ("name", "<u8"),
        ("driver", "<u4"),
        ("reserved", "<u4"),
    ]
)

SAMPLE: Final = np.dtype(
    [
        ("crc", "<u8"),
        ("pc", "<u8"),
        ("name", "<u8"),
        ("function", "<u4"),
        ("correlation", "<u4"),
        ("reason", "<u4"),
        ("samples", "<u4"),
    ]
)
