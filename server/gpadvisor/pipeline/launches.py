# SPDX-License-Identifier: Apache-2.0
"""Launches that the user states for the model: on the command line, or in ``[launches.KERNEL]``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from gpadvisor.errors import SettingsError

Dimensions: TypeAlias = tuple[int, int, int]
ArgumentValue: TypeAlias = int | float | None
"""One scalar argument; None where it is a pointer or not known."""

_VALUES: Final[Mapping[str, tuple[float, float]]] = {
    "pointer": (0, (1 << 64) - 1),
    "int": (-(1 << 31), (1 << 32) - 1),
    "long": (-(1 << 63), (1 << 64) - 1),
    "float": (-3.4028235e38, 3.4028235e38),
    "double": (-math.inf, math.inf),
}
"""The least and the most of each kind of argument; whole ones are signed or not."""
ARGUMENT_KINDS: Final = tuple(_VALUES)
MAX_WHOLE: Final = (1 << 31) - 1
"""The most of any count or size: that of a grid in CUDA."""


def is_whole(text: str) -> bool:
    """Whether a text is a number from 0 to ``MAX_WHOLE`` in digits."""
    return text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= MAX_WHOLE


class StatedArgument(NamedTuple):
    """One kernel argument in order of declaration."""

    kind: str  # one of ARGUMENT_KINDS
    value: ArgumentValue = None


class StatedLaunch(NamedTuple):
    """What is known of a launch that was not measured; None where the model's default holds."""

    grid: Dimensions | None = None
    block: Dimensions | None = None
    dynamic_shared_bytes: int | None = None
    loops: Mapping[int, int] = MappingProxyType({})  # trips by source line
    arguments: tuple[StatedArgument, ...] = ()
    l1_hit_rate: float | None = None
    l2_hit_rate: float | None = None
    sms: int | None = None
    seed: int | None = None

    def over(self, launch: StatedLaunch) -> StatedLaunch:
        """This launch, with what it leaves open taken from another."""
        changes = {
            name: value
            for name, value in self._asdict().items()
            if value not in (None, ()) and name != "loops"
        }
        return launch._replace(loops={**launch.loops, **self.loops}, **changes)


def no_launch(path: Path, notes: Sequence[str] = ()) -> str:
    """Why nothing of a file can be modelled, and what to do; ``notes`` say what a source leaves open."""
    why = f" ({notes[0]})" if notes else ""
    return (
        f"no launch is known for a kernel of {path}{why}; give --grid and --block, "
        "or a table [launches.KERNEL] in gpadvisor.toml"
    )


def parse_launches(table: object, where: str) -> Mapping[str, StatedLaunch]:
    """Checked launches from the settings' table, by kernel name.

    Raises:
        SettingsError: an unknown key or a value of the wrong type.
    """
    if not isinstance(table, dict) or not all(isinstance(entry, dict) for entry in table.values()):
        raise SettingsError(f"{where}: 'launches' must be a table with one table per kernel")
    return MappingProxyType(
        {name: _launch(entry, f"{where}: launches.{name}") for name, entry in table.items()}
    )


def _launch(table: Mapping[str, object], where: str) -> StatedLaunch:
    keys = StatedLaunch._fields
    values: dict[str, object] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in keys:
            names = ", ".join(sorted(entry.replace("_", "-") for entry in keys))
            raise SettingsError(f"{where}: unknown key '{key}'; known are {names}")
        values[name] = _CHECKS[name](value, f"{where}.{key}")
    return StatedLaunch()._replace(**values)  # type: ignore[arg-type] # each value was checked for its field


def dimensions(value: object, where: str) -> Dimensions:
    """One to three positive sizes; those left out are 1."""
    sizes = [value] if isinstance(value, int) else value
    if (
        isinstance(sizes, list)
        and 1 <= len(sizes) <= 3
        and all(
            isinstance(size, int) and not isinstance(size, bool) and 0 < size <= MAX_WHOLE for size in sizes
        )
    ):
        x, y, z = (*sizes, 1, 1)[:3]
        return x, y, z
    raise SettingsError(f"{where} must be one to three positive integers up to {MAX_WHOLE}")


def _count(value: object, where: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_WHOLE:
        return value
    raise SettingsError(f"{where} must be an integer from 0 to {MAX_WHOLE}")


def _rate(value: object, where: str) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    raise SettingsError(f"{where} must lie between 0 and 1")


def _loops(value: object, where: str) -> Mapping[int, int]:
    if isinstance(value, dict) and all(is_whole(line) for line in value):
        return MappingProxyType(
            {int(line): _count(trips, f"{where}.{line}") for line, trips in value.items()}
        )
    raise SettingsError(f"{where} must be a table of source lines and how often each loop runs")


def _arguments(value: object, where: str) -> tuple[StatedArgument, ...]:
    if not isinstance(value, list):
        raise SettingsError(f"{where} must be a list such as ['pointer', {{int = 1024}}, 'float']")
    return tuple(_argument(entry, where) for entry in value)


def _argument(value: object, where: str) -> StatedArgument:
    kind, content = value, None
    if isinstance(value, dict) and len(value) == 1:
        ((kind, content),) = value.items()
    return stated_argument(kind, content, where)


def stated_argument(kind: object, value: object, where: str) -> StatedArgument:
    """A checked argument; ``where`` begins the message.

    Raises:
        SettingsError: no such kind, or a value that it does not hold.
    """
    if kind not in ARGUMENT_KINDS:
        raise SettingsError(
            f"{where} has an entry that is neither of {', '.join(ARGUMENT_KINDS)} nor {{int = 1}}"
        )
    if value is None:
        return StatedArgument(str(kind))
    least, most = _VALUES[str(kind)]
    types = int if isinstance(most, int) else (int, float)
    if isinstance(value, bool) or not isinstance(value, types) or not least <= value <= most:
        raise SettingsError(f"{where}: {value!r} is no value of kind {kind}")
    return StatedArgument(str(kind), value)


_CHECKS: Final = {
    "grid": dimensions,
    "block": dimensions,
    "dynamic_shared_bytes": _count,
    "loops": _loops,
    "arguments": _arguments,
    "l1_hit_rate": _rate,
    "l2_hit_rate": _rate,
    "sms": _count,
    "seed": _count,
}
