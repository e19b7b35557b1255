# SPDX-License-Identifier: Apache-2.0
"""Readable names of functions, from the mangled names of symbol and line tables."""

from __future__ import annotations

import functools


@functools.lru_cache(maxsize=65_536)
def demangle(name: str) -> str:
    """The C++ spelling of a symbol, or the name itself where it is no mangled name.

    A helper in the section of a kernel is called ``$<kernel>$<function>``; its own name is the last part.
    """
    # Reading its tables costs more than a tenth of a second of start-up, which most commands need not pay.
    import demangle as itanium  # noqa: PLC0415  # start-up time, as said above

    own = name.rsplit("$", 1)[-1] if name.startswith("$") else name
    return itanium.demangle(own or name, language="itanium", style="gnu")
