# SPDX-License-Identifier: Apache-2.0
"""CUDA ELF images: code sections, symbols, launch facts, lines and inline chains (GPA section III)."""

from __future__ import annotations

from gpadvisor.cubin.decoded import Lines, decode_lines, dump_lines, load_lines
from gpadvisor.cubin.image import CodeSection, CodeSymbol, Cubin, LineTable
from gpadvisor.cubin.lines import line_table_damage, section_lines
from gpadvisor.cubin.names import demangle, unescaped_path
from gpadvisor.cubin.read import read_cubin, stamped

__all__ = [
    "CodeSection",
    "CodeSymbol",
    "Cubin",
    "LineTable",
    "Lines",
    "decode_lines",
    "demangle",
    "dump_lines",
    "line_table_damage",
    "load_lines",
    "read_cubin",
    "section_lines",
    "stamped",
    "unescaped_path",
]
