# SPDX-License-Identifier: Apache-2.0
"""A Python application that begins to collect when CUDA is in use already, twice."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import io
import json
import sys
from pathlib import Path

import gpadvisor
from gpadvisor.errors import GpadvisorError
from gpadvisor.profiler.cupti import CollectOptions, ProcessSession

FOLDER, CUPTI, EARLY, LATER = map(Path, sys.argv[1:5])
driver = ctypes.CDLL(str(FOLDER / "libcuda.so.1"))
none = ctypes.c_void_p()


def load(image: Path, name: bytes) -> ctypes.c_void_p:
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    data = image.read_bytes()
    driver.fake_load(ctypes.byref(module), data, ctypes.c_size_t(len(data)))
    driver.cuModuleGetFunction(ctypes.byref(function), module, name)
    return function


def launch(function: ctypes.c_void_p, times: int) -> None:
    for _ in range(times):
        assert driver.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, none, none, none) == 0


context = ctypes.c_void_p()
driver.cuInit(0)
driver.cuCtxCreate(ctypes.byref(context), 0, 0)
early = load(EARLY, b"early")
launch(early, 3)
options = CollectOptions(cupti_library=CUPTI)
result: dict[str, object] = {}
with ProcessSession(options) as first:
    launch(early, 5)
    later = load(LATER, b"later")
    launch(later, 7)
    try:
        with ProcessSession(options):
            pass
    except GpadvisorError as error:
        result["nested"] = str(error)
launch(later, 11)
with ProcessSession(options) as second:
    launch(later, 13)
for name, session in (("first", first), ("second", second)):
    result[name] = {
        kernel.launch.kernel: [
            kernel.metrics["gpadvisor__launches"],
            kernel.total_samples,
            kernel.binary is not None,
            [problem.message for problem in kernel.problems],
            [frame.function for frame in kernel.call_stack if frame.module == "python"],
        ]
        for kernel in session.profile.kernels
    }
    result[name + " problems"] = [problem.message for problem in session.profile.problems]
second.save(sys.argv[5])
with gpadvisor.profile(cupti_library=CUPTI) as block:
    launch(later, 2)
result["devices"] = [dataclasses.asdict(device) for device in block.devices]
result["used"] = dataclasses.asdict(block.profile.kernels[0].device)
result["advice"] = block.advice(kernel="lat.*")


class Shell:
    def register_magic_function(self, function, magic_kind, magic_name):
        assert (magic_kind, magic_name) == ("line_cell", "gpadvisor")
        self.magic = function

    def run_cell(self, cell):
        exec(cell, globals())


shell = Shell()
gpadvisor.load_ipython_extension(shell)
with contextlib.redirect_stdout(io.StringIO()) as shown:
    shell.magic("--kernel later", "launch(later, 4)")
result["magic"] = shown.getvalue()
sys.stdout.write(json.dumps(result))
