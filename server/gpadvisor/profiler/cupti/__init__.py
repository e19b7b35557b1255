# SPDX-License-Identifier: Apache-2.0
"""The collector that rides inside the application: CUPTI's PC Sampling API through a C library of ours.

The driver loads the library into every process that uses CUDA (``CUDA_INJECTION64_PATH``); it writes what
CUPTI delivers into a collection directory, one file per process and each machine code image once under its
sha256. ``store.load_profile(collection.path)`` turns that into a ``Profile``.

Differs from GPA: the PC Sampling API of 2021 in place of the Activity API, since its continuous mode does not
serialize kernels (GPA section VII names that as a limit).
"""

from __future__ import annotations

from gpadvisor.profiler.cupti.build import InjectionLibrary, build_library
from gpadvisor.profiler.cupti.collecting import collect
from gpadvisor.profiler.cupti.discovery import Cupti, find_cupti
from gpadvisor.profiler.cupti.in_process import ProcessSession
from gpadvisor.profiler.cupti.options import Collection, CollectOptions, Heartbeat, SamplingMode
from gpadvisor.sandbox.application import Ending

__all__ = [
    "CollectOptions",
    "Collection",
    "Cupti",
    "Ending",
    "Heartbeat",
    "InjectionLibrary",
    "ProcessSession",
    "SamplingMode",
    "build_library",
    "collect",
    "find_cupti",
]
