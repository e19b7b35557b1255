# SPDX-License-Identifier: Apache-2.0
"""SASS: from disassembly and code bytes to instructions with exact operands (GPA section III, Table I)."""

from __future__ import annotations

from gpadvisor.sass.decoder import decode
from gpadvisor.sass.listing import (
    Listing,
    SassLine,
    dump_listing,
    load_listing,
    parse_cuobjdump,
    parse_hex_text,
    parse_json,
)
from gpadvisor.sass.opcodes import opcode_info

__all__ = [
    "Listing",
    "SassLine",
    "decode",
    "dump_listing",
    "load_listing",
    "opcode_info",
    "parse_cuobjdump",
    "parse_hex_text",
    "parse_json",
]
