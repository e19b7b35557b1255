# SPDX-License-Identifier: Apache-2.0
"""External tools: finding and running nvdisasm, cuobjdump and the compilers, with limits."""

from __future__ import annotations

from gpadvisor.sandbox.tools import ToolOutput, run_tool
from gpadvisor.toolchain.compile import compile_source
from gpadvisor.toolchain.compile_job import Compiled, CompileSettings
from gpadvisor.toolchain.compiler_messages import CompileError
from gpadvisor.toolchain.disassembly import Disassembly, disassemble
from gpadvisor.toolchain.discovery import Tool, find_tools

__all__ = [
    "CompileError",
    "CompileSettings",
    "Compiled",
    "Disassembly",
    "Tool",
    "ToolOutput",
    "compile_source",
    "disassemble",
    "find_tools",
    "run_tool",
]
