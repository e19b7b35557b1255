# SPDX-License-Identifier: Apache-2.0
"""The inner loop as machine code, which fits the sources that it was made of or is made anew.

A wheel brings that of one platform, for every processor of its kind; elsewhere numba makes it at first use.
To load it takes llvmlite alone.
"""

from __future__ import annotations

import ctypes
import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, update_wrapper
from os import uname
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from gpadvisor.files import cache_folder, is_ours, read_file, write_atomically
from gpadvisor.model import machine

Plain = TypeVar("Plain", bound=Callable[..., Any])

_HERE: Final = Path(__file__).parent
_MAX_BYTES: Final = 16 << 20
_ENTRY: Final = "gpadvisor_run"
_inlined: dict[Callable[..., Any], bool] = {}
"""The functions that are compiled: whether each becomes part of those that call it."""


def compiled(function: Plain) -> Plain:
    """A function that becomes part of the compiled functions that call it."""
    _inlined[function] = True
    return function


def seldom(function: Plain) -> Plain:
    """A function that is called by compiled ones, but is not made part of them."""
    _inlined[function] = False
    return function


def entry(function: Plain) -> Plain:
    """A function that Python calls with named tuples of arrays and whole numbers; it returns nothing."""
    return cast("Plain", NativeFunction(function))


class NativeFunction:
    """A function that runs as machine code."""

    def __init__(self, function: Callable[..., None]) -> None:
        self._function = function
        self._native: dict[str, _Native] = {}
        update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> None:
        """Run it.

        Raises:
            RuntimeError: the machine code says that it could not go on.
        """
        layout = _layout(arguments)
        if layout not in self._native:
            self._native[layout] = _Native(self.prepare(*arguments))
        if self._native[layout]([word for argument in arguments for word in _words(argument)]):
            raise RuntimeError(f"{self._function.__name__} failed")

    def prepare(self, *arguments: Any) -> bytes:
        """The machine code for such arguments: what is on disk, else made now and kept there."""
        what = f"{_sources_digest()} {self._function.__qualname__} {_layout(arguments)}"
        key = hashlib.sha256(what.encode()).digest()
        for place in _places():
            if (code := _read(place, key)) is not None:
                return code
        from gpadvisor.simulator.ahead_of_time import machine_code  # noqa: PLC0415 - half a second, and seldom needed

        code = machine_code(self._function, _inlined, arguments, _ENTRY)
        _keep(key + hashlib.sha256(code).digest() + code)
        return code


@cache
def _sources_digest() -> str:
    """Of all files here and of the constants that they share: functions, places of columns, classes."""
    digest = hashlib.sha256()
    for path in (*sorted(_HERE.glob("*.py")), Path(machine.__file__)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _places() -> Iterator[Path]:
    """Where code may be: beside the sources, as in a wheel, else in the user's cache."""
    name = f"loop.{sys.platform}-{uname().machine}.o"
    yield _HERE / name
    if (folder := cache_folder()) is not None:
        yield folder / name


def _read(place: Path, key: bytes) -> bytes | None:
    """The code of a file; None where it is that of other sources, damaged, or may be somebody else's."""
    try:
        # What is loaded from there is run: beside the package it is the package's owner's, else ours alone.
        if place.parent != _HERE and not is_ours(place):
            return None
        data = read_file(place, max_bytes=_MAX_BYTES)
    except OSError:
        return None
    code = data[64:]
    return code if data[:64] == key + hashlib.sha256(code).digest() else None


def _keep(data: bytes) -> None:
    """Write to the first place that can be written to; without one it is made anew in each process."""
    for place in _places():
        with suppress(OSError):
            place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if is_ours(place.parent):
                write_atomically(place, data)
                return


def _layout(arguments: Iterable[Any]) -> str:
    """What compiled code takes for granted of its arguments.

    Raises:
        ValueError: an array whose items do not lie one after the other.
    """
    return " ".join(_layout_of(argument) for argument in arguments)


def _layout_of(argument: Any) -> str:
    if isinstance(argument, int):
        return "int"
    if not all(array.flags.c_contiguous and array.flags.aligned for array in argument):
        raise ValueError(f"an array of {type(argument).__name__} has gaps")
    shapes = (f"{array.dtype.str}{array.ndim}" for array in argument)
    return f"{type(argument).__name__}({' '.join(shapes)})"


def _words(argument: Any) -> Iterator[int]:
    """An argument as numba passes it: of an array its length, items' size, address and shape."""
    if isinstance(argument, int):
        yield argument
        return
    for array in argument:
        yield from (0, 0, array.size, array.itemsize, array.ctypes.data, *array.shape, *array.strides)


class _Native:
    """The function that machine code holds, and the memory that both are in."""

    def __init__(self, code: bytes) -> None:
        import llvmlite.binding as llvm  # noqa: PLC0415 - most commands simulate nothing

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        target = llvm.Target.from_default_triple().create_target_machine(jit=True)
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
        self._engine.add_object_file(llvm.object_file.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        address = self._engine.get_function_address(_ENTRY)
        self._function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(address)

    def __call__(self, words: Sequence[int]) -> int:
        """Run it without holding Python's lock; 0 where all went well."""
        return int(self._function((ctypes.c_int64 * len(words))(*words)))
