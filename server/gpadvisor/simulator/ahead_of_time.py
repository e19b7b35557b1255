# SPDX-License-Identifier: Apache-2.0
"""Machine code of a compiled function and all that it calls, by numba, without optimizing any of them twice.

Numba itself makes optimized machine code of each function, of those in it again, and again of those in these.
Here their code is put together as it is, optimized once, and written for every processor of this kind. To run
it takes neither Python nor numba.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import FunctionType
from typing import Any, Final

import llvmlite.binding as llvm
from numba.core.codegen import AOTCodeLibrary, AOTCPUCodegen
from numba.core.dispatcher import Dispatcher
from numba.core.registry import CPUTarget, cpu_target
from numba.core.typing.typeof import typeof

# Nothing is allocated in compiled code, so that reference counts are only a cost, as are wrappers for callers
# that are not compiled.
_OPTIONS: Final[dict[str, Any]] = {
    "nopython": True,
    "nogil": True,
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "_nrt": False,
}
_ADDRESS: Final = 1  # of code that is never run here


class _Library(AOTCodeLibrary):
    """One function's code, neither optimized nor put together with others yet."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout  # noqa: SLF001 - numba has no other way

    def finalize(self) -> None:
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:  # noqa: ARG002 - what numba calls
        return _ADDRESS

    def all_libraries(self) -> list[_Library]:
        """This one and those of all that it calls."""
        libraries: dict[_Library, None] = {}
        waiting = [self]
        while waiting:
            library = waiting.pop()
            if library not in libraries:
                libraries[library] = None
                waiting += library._linking_libraries  # noqa: SLF001 - its own class
        return [*libraries]


class _Codegen(AOTCPUCodegen):
    _library_class = _Library

    def set_env(self, name: str, environment: object) -> None:
        """What compiled code would need to call Python is left out."""


class _Target(CPUTarget):
    """This kind of processor, whichever features this one has."""

    @cached_property
    def target_context(self) -> Any:
        context = cpu_target.target_context
        context.refresh()
        codegen = _Codegen("loop")  # type: ignore[no-untyped-call] # as above
        return context.subtarget(_internal_codegen=codegen, aot_mode=True)

    @property
    def typing_context(self) -> Any:
        return cpu_target.typing_context


class _Dispatcher(Dispatcher):
    targetdescr = _Target("cpu")  # type: ignore[no-untyped-call] # as above


def machine_code(
    function: Callable[..., None],
    inlined: Mapping[Callable[..., Any], bool],
    arguments: Sequence[object],
    name: str,
) -> bytes:
    """An object file for this platform that holds one function which others may call.

    Args:
        function: what to compile; it returns nothing.
        inlined: functions to compile with it, and whether each becomes part of those that call it.
        arguments: values of the types that it will be called with.
        name: of the C function in the file: it takes the address of the arguments' words, and returns 0 where
            all went well.
    """
    types = tuple(map(typeof, arguments))
    dispatcher = _dispatchers({function: False, **inlined})[function]
    dispatcher.compile(types)
    made: Any = dispatcher.overloads[types]
    codegen = made.library.codegen
    module = llvm.parse_assembly(str(codegen._create_empty_module("loop")))  # noqa: SLF001 - as above
    for library in made.library.all_libraries():
        module.link_in(library._final_module, preserve=True)  # noqa: SLF001 - as above
    _make_entry(module, made.fndesc.llvm_func_name, name)
    return _optimized(module, codegen._tm)  # noqa: SLF001 - as above


def _dispatchers(inlined: Mapping[Callable[..., Any], bool]) -> dict[Callable[..., Any], _Dispatcher]:
    """Numba's of all functions, which see one another where the functions see the others."""
    spaces = {function.__module__: {**function.__globals__} for function in inlined}
    made = {
        function: _Dispatcher(
            FunctionType(function.__code__, spaces[function.__module__], function.__name__),
            targetoptions={**_OPTIONS, "forceinline": is_inlined},
        )
        for function, is_inlined in inlined.items()
    }
    for space in spaces.values():
        functions = {name: value for name, value in space.items() if isinstance(value, FunctionType)}
        space.update({name: made[value] for name, value in functions.items() if value in made})
    return made


def _make_entry(module: Any, function: str, name: str) -> None:
    """Add a C function that takes the arguments from memory, and hide all others."""
    called = module.get_function(function)
    called.name = "called"  # what numba calls it is longer than names may be
    kinds = [str(argument.type) for argument in called.arguments]
    loads = "".join(
        f"%place{k} = getelementptr i64, ptr %words, i64 {k}\n%word{k} = load {kind}, ptr %place{k}\n"
        for k, kind in enumerate(kinds[2:])
    )
    words = ", ".join(f"{kind} %word{k}" for k, kind in enumerate(kinds[2:]))
    added = llvm.parse_assembly(
        f"declare i32 @called({', '.join(kinds)})\n"
        f"define i32 @{name}(ptr %words) {{\n"
        f"%result = alloca ptr\n%error = alloca ptr\n{loads}"
        f"%status = call i32 @called(ptr %result, ptr %error, {words})\n"
        "ret i32 %status\n}\n"
    )
    added.triple, added.data_layout = module.triple, module.data_layout
    module.link_in(added)
    for number, part in enumerate((*module.functions, *module.global_variables)):
        if not part.is_declaration and part.name != name:
            part.linkage = "internal"
            part.name = (
                f"part{number}"  # numba counts what this process has compiled, and says so in its names
            )


def _optimized(module: Any, target: Any) -> bytes:
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    passes = llvm.create_pass_builder(target, options)
    passes.getModulePassManager().run(module, passes)
    code: bytes = target.emit_object(module)
    return code
