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


_CONSTANTS: Final = {
    "INFINITY": "CUDART_INF_F",
    "NAN": "CUDART_NAN_F",
    "HUGE_VAL": "CUDART_INF",
    "HUGE_VALF": "CUDART_INF_F",
    "M_E": "2.7182818284590452354",
    "M_LOG2E": "1.4426950408889634074",
    "M_LOG10E": "0.43429448190325182765",
    "M_LN2": "0.69314718055994530942",
    "M_LN10": "2.30258509299404568402",
    "M_PI": "3.14159265358979323846",
    "M_PI_2": "1.57079632679489661923",
    "M_PI_4": "0.78539816339744830962",
    "M_1_PI": "0.31830988618379067154",
    "M_2_PI": "0.63661977236758134308",
    "M_2_SQRTPI": "1.12837916709551257390",
    "M_SQRT2": "1.41421356237309504880",
    "M_SQRT1_2": "0.70710678118654752440",
}


def _in_std(names: Sequence[str]) -> str:
    return "".join(f"namespace std {{ using ::{name}; }}\n" for name in names)


def _everything(header: str) -> str:
    return f"#include <cuda/std/{header}>\nnamespace std {{ using namespace cuda::std; }}\n"


_FLOATS: Final = "#include <cuda/std/cfloat>\n#include <cuda/std/climits>\n" + "".join(
    f"#ifndef {kind}_{name}\n#define {kind}_{name} __{kind}_{name}__\n#endif\n"
    for kind in ("FLT", "DBL")
    for name in ["MANT_DIG", "DIG", "MIN", "MAX", "EPSILON", "MIN_EXP", "MIN_10_EXP", "MAX_EXP", "MAX_10_EXP"]
)
"""The headers of CUDA 12 leave NVRTC's own names as they are."""

BROUGHT_BY_NVCC: Final = ("limits.h", "math.h", "stddef.h")
"""What a source has without including it: through the headers that nvcc includes first of all."""

HOST_HEADERS: Final[Mapping[str, str]] = {
    **dict.fromkeys(_FOR_THE_HOST.split(), ""),
    **{name: _everything(name) for name in _WITH_DEVICE_CODE.split()},
    "stddef.h": "#include <cuda/std/cstddef>\nusing cuda::std::ptrdiff_t;\n",
    "stdint.h": "#include <cuda/std/cstdint>\n"
    + "".join(f"using cuda::std::{name};\n" for name in _INTEGERS),
    "cstdint": f"#include <stdint.h>\n{_in_std(_INTEGERS)}",
    "complex": "#include <cuda/std/complex>\nnamespace std { using cuda::std::complex; }\n",
    **dict.fromkeys(("float.h", "cfloat"), _FLOATS),
    **dict.fromkeys(("limits.h", "climits"), "#include <cuda/std/climits>\n"),
    "math.h": "#include <math_constants.h>\n" + "".join(f"#define {a} {b}\n" for a, b in _CONSTANTS.items()),
    "cmath": f"#include <math.h>\n{_in_std(_FUNCTIONS.split())}",
}
"""The text of each by its name."""
