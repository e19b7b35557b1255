# SPDX-License-Identifier: Apache-2.0
"""A Python application that launches through ctypes, which lets go of the interpreter's lock."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path


class Launcher:
    def __init__(self, folder, image):
        self.driver = ctypes.CDLL(folder + "/libcuda.so.1")
        context, module = ctypes.c_void_p(), ctypes.c_void_p()
        self.function = ctypes.c_void_p()
        data = Path(image).read_bytes()
        assert self.driver.cuInit(0) == 0
        assert self.driver.cuCtxCreate(ctypes.byref(context), 0, 0) == 0
        assert self.driver.fake_load(ctypes.byref(module), data, ctypes.c_size_t(len(data))) == 0
        assert self.driver.cuModuleGetFunction(ctypes.byref(self.function), module, b"alpha") == 0

    def launch(self):
        none = ctypes.c_void_p()
        return self.driver.cuLaunchKernel(self.function, 1, 1, 1, 32, 1, 1, 0, none, none, none)  # launch


def übergang(launcher):  # noqa: PLC2401 names of the user are not all ASCII
    return launcher.launch()  # call


made = Launcher(sys.argv[1], sys.argv[2])
for _ in range(5):
    assert übergang(made) == 0  # module
