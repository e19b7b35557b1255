# SPDX-License-Identifier: Apache-2.0
"""Headers of the C and C++ libraries for NVRTC: what device code takes of them, from CUDA's own headers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

_INTEGERS: Final = (
    *(
        f"{sign}int{kind}{bits}_t"
        for sign in ("", "u")
        for kind in ("", "_least", "_fast")
        for bits in (8, 16, 32, 64)
    ),
    *("intptr_t", "uintptr_t", "intmax_t", "uintmax_t"),
)
_FUNCTIONS: Final = """
abs acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs
fdim floor fma fmax fmin fmod frexp hypot ilogb ldexp lgamma llrint llround log log10 log1p log2
logb lrint lround modf nearbyint nextafter pow remainder remquo rint round scalbn sin sinh sqrt tan
tanh tgamma trunc
"""
_WITH_DEVICE_CODE: Final = """
algorithm array bit concepts cstddef functional initializer_list iterator limits numeric optional
ratio span tuple type_traits utility variant
"""
_FOR_THE_HOST: Final = """
assert.h complex.h ctype.h dirent.h errno.h fcntl.h fenv.h getopt.h inttypes.h iso646.h libgen.h
locale.h malloc.h memory.h omp.h pthread.h sched.h setjmp.h signal.h stdarg.h stdbool.h stdio.h
stdlib.h string.h strings.h sys/mman.h sys/resource.h sys/stat.h sys/time.h sys/types.h sys/wait.h
time.h unistd.h wchar.h any atomic barrier bitset cassert cctype cerrno cfenv charconv chrono
cinttypes clocale codecvt condition_variable csetjmp csignal cstdarg cstdio cstdlib cstring ctime
cwchar deque exception execution filesystem format forward_list fstream future iomanip ios iosfwd
iostream istream latch list locale map memory memory_resource mutex new ostream queue random ranges
regex scoped_allocator semaphore set shared_mutex source_location sstream stack stdexcept streambuf
string string_view system_error thread typeindex typeinfo unordered_map unordered_set valarray
vector
"""


def _in_std(names: Sequence[str]) -> str:
    return "".join(f"namespace std {{ using ::{name}; }}\n" for name in names)


def _everything(header: str) -> str:
    return f"#include <cuda/std/{header}>\nnamespace std {{ using namespace cuda::std; }}\n"


HOST_HEADERS: Final[Mapping[str, str]] = {
    **dict.fromkeys(_FOR_THE_HOST.split(), ""),
    **{name: _everything(name) for name in _WITH_DEVICE_CODE.split()},
    "stddef.h": "#include <cuda/std/cstddef>\nusing cuda::std::ptrdiff_t;\n",
    "stdint.h": "#include <cuda/std/cstdint>\n"
    + "".join(f"using cuda::std::{name};\n" for name in _INTEGERS),
    "cstdint": f"#include <stdint.h>\n{_in_std(_INTEGERS)}",
    "complex": "#include <cuda/std/complex>\nnamespace std { using cuda::std::complex; }\n",
    **dict.fromkeys(("float.h", "cfloat"), "#include <cuda/std/cfloat>\n"),
    **dict.fromkeys(("limits.h", "climits"), "#include <cuda/std/climits>\n"),
    "math.h": "#include <cuda/std/limits>\n#include <math_constants.h>\n",
    "cmath": f"#include <math.h>\n{_in_std(_FUNCTIONS.split())}",
}
"""The text of each by its name."""
