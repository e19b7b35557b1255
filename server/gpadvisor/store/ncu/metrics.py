# SPDX-License-Identifier: Apache-2.0
"""Metric values of a report, and their instances: per-instruction values decoded as columns.

A report of a large kernel has millions of instances (instructions times metrics), nearly all of the same
few shapes, so the common shapes are decoded by numpy over all instances of a metric at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gpadvisor.model.profile import MetricValue
from gpadvisor.store.ncu import wire

_INSTANCE_TAG = 0x1A  # field 3, length-delimited
_SHORTEST = 4  # bytes: the head of an instance and of its id
_ID_TAG, _VALUE_TAG = 0x0A, 0x12  # fields 1 and 2 of an instance
_STRING, _FLOAT, _DOUBLE, _UINT32, _UINT64 = 0x0A, 0x15, 0x19, 0x20, 0x28  # the oneof of a value
_UINTS = _UINT32, _UINT64
_MAX_VARINT_BYTES = 10
_FEW_BYTES = 1 << 10  # of a metric; some forty instances
_MANY_BYTES = 1 << 20  # from there on it is the instances that take time, and not the metrics


@dataclass(frozen=True, slots=True, eq=False)
class Instances:
    """The instances of one metric: equal-length lists of correlation ids and values."""

    ids: NDArray[np.uint64] | tuple[MetricValue | None, ...]  # tuple where ids are not all unsigned integers
    values: NDArray[np.float64] | NDArray[np.uint64] | tuple[MetricValue | None, ...]

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """One metric of one launch; ``value`` is None where only instances exist."""

    name: str
    value: MetricValue | None
    encoded: bytes | memoryview  # the whole message; instances are decoded on request
    has_instances: bool

    def instances(self) -> Instances | None:
        """Decode the instances; None where there are none."""
        return decode_instances(bytes(self.encoded)) if self.has_instances else None


def decode_value(data: bytes) -> MetricValue | None:
    """A metric value; None where the message is empty or of a type not known here."""
    result: MetricValue | None = None
    for number, value in wire.iterate(data):
        if isinstance(value, int):
            result = value if number in {4, 5} else result
        elif number == 1:
            result = value.decode("utf-8", "replace")
        elif number == 2 and len(value) == 4:
            result = wire.float32(value)
        elif number == 3 and len(value) == 8:
            result = wire.float64(value)
    return result


def decode_metric(data: bytes) -> tuple[int | None, MetricValue | None, bool]:
    """Index of the name, plain value, and whether there are instances."""
    name: int | None = None
    value: MetricValue | None = None
    index, end = 0, len(data)
    while index < end:
        if data[index] == _INSTANCE_TAG:
            # Instances follow the name and the value; fields behind them are looked for only in small
            # messages, since walking through all instances here would double the work.
            return (name, value, True) if name is not None else (*_slow_metric(data), True)
        number, content, index = _one_field(data, index)
        if number == 1 and isinstance(content, int):
            name = content
        elif number == 2 and isinstance(content, bytes):
            value = decode_value(content)
    return name, value, False


def _one_field(data: bytes, index: int) -> tuple[int, wire.FieldValue, int]:
    key, index = wire.read_varint(data, index)
    kind = key & 7
    if kind == 0:
        value, index = wire.read_varint(data, index)
        return key >> 3, value, index
    length = {1: 8, 5: 4}.get(kind, -1)
    if kind == 2:
        length, index = wire.read_varint(data, index)
    if length < 0 or length > len(data) - index:
        raise wire.WireError("a field of a metric is longer than the metric")
    return key >> 3, data[index : index + length], index + length


def _slow_metric(data: bytes) -> tuple[int | None, MetricValue | None]:
    fields = wire.parse(data)
    encoded = wire.blob(fields, 2)
    return wire.integer(fields, 1), None if encoded is None else decode_value(encoded)


def decode_instances(data: bytes) -> Instances:
    """Decode field 3 of a metric: correlation ids and values."""
    few = _few_instances(data) if len(data) <= _FEW_BYTES else None
    if few is not None:
        return few
    bounds = _even_bounds(data)
    if bounds is not None:
        fast = _fast_instances(data, *bounds)
        if fast is not None:
            return fast
    starts, ends = _instance_bounds(data)
    if not starts:
        return Instances(ids=np.zeros(0, np.uint64), values=np.zeros(0, np.uint64))
    if bounds is None:
        fast = _fast_instances(data, np.array(starts, np.int64), np.array(ends, np.int64))
        if fast is not None:
            return fast
    return _slow_instances(data, starts, ends)


def decode_together(messages: Sequence[bytes | memoryview]) -> list[Instances]:
    """The same for several metrics: at once where they are short and alike, as counts by address are."""
    if len(messages) > 1 and _FEW_BYTES < sum(map(len, messages)) <= _MANY_BYTES:
        parts = [data[_first_instance(data) :] for data in map(bytes, messages)]
        joined = b"".join(parts)
        bounds = _even_bounds(joined)
        found = None if bounds is None else _fast_instances(joined, *bounds)
        if bounds is not None and found is not None:
            ends, behind = np.cumsum([len(part) for part in parts]), np.concatenate([[0], bounds[1]])
            rows = np.searchsorted(behind, ends)
            if np.array_equal(behind[rows], ends):  # no instance goes on into the next metric
                spans = zip([0, *rows.tolist()], rows.tolist(), strict=False)
                return [Instances(found.ids[start:end], found.values[start:end]) for start, end in spans]
    return [decode_instances(bytes(data)) for data in messages]


def _first_instance(data: bytes) -> int:
    """Where the instances of a metric begin, behind its other fields."""
    index = 0
    while index < len(data) and data[index] != _INSTANCE_TAG:
        _, _, index = _one_field(data, index)
    return index


def _few_instances(data: bytes) -> Instances | None:
    """The instances of a short metric, for which numpy takes longer than Python.

    None where one is not {id: uint, value: uint or double}, or where the kinds of values are mixed.
    """
    ids: list[int] = []
    numbers: list[int] = []
    reals: list[float] = []
    index, end = _first_instance(data), len(data)
    while index < end:
        behind = index + 2 + data[index + 1] if index + 2 < end and data[index] == _INSTANCE_TAG else end + 1
        if behind > end or behind < index + 9 or data[index + 2] != _ID_TAG or data[index + 4] not in _UINTS:
            return None
        value_at = index + 4 + data[index + 3]
        if (
            value_at + 4 > behind
            or data[value_at] != _VALUE_TAG
            or value_at + 2 + data[value_at + 1] != behind
        ):
            return None
        identifier = _short_varint(data[index + 5 : value_at])
        kind, encoded = data[value_at + 2], data[value_at + 3 : behind]
        number = _short_varint(encoded) if kind in _UINTS else None
        if identifier is None or (number is None and (kind != _DOUBLE or len(encoded) != 8)):
            return None
        ids.append(identifier)
        if number is None:
            reals.append(wire.float64(encoded))
        else:
            numbers.append(number)
        index = behind
    if reals and numbers:
        return None
    values = np.array(reals, np.float64) if reals else np.array(numbers, np.uint64)
    return Instances(ids=np.array(ids, np.uint64), values=values)


@lru_cache(maxsize=1 << 14)  # one for each instruction: all metrics of a launch have its address
def _short_varint(encoded: bytes) -> int | None:
    """A variable-length integer of up to nine bytes that fills its field."""
    if not 1 <= len(encoded) <= _MAX_VARINT_BYTES - 1 or encoded[-1] >= 0x80:
        return None
    value = encoded[-1]
    for byte in encoded[-2::-1]:
        if byte < 0x80:
            return None
        value = value << 7 | byte & 0x7F
    return value


def _even_bounds(data: bytes) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Starts and ends of short instances that follow one another to the end, all found at once.

    Every place that looks like the head of an instance is taken; each must end where the next one begins.
    None where one does not, be it another field, a long instance, or a number that only looks like a head.
    """
    index = _first_instance(data)
    raw = np.frombuffer(data, np.uint8)[index:]
    if len(raw) < _SHORTEST:
        return None
    heads = np.flatnonzero((raw[:-2] == _INSTANCE_TAG) & (raw[2:] == _ID_TAG)) + index
    if not len(heads) or heads[0] != index:
        return None
    raw = np.frombuffer(data, np.uint8)
    sizes = raw[heads + 1]
    ends = heads + 2 + sizes
    if ends[-1] != len(data) or np.any(sizes >= 0x80) or not np.array_equal(ends[:-1], heads[1:]):
        return None
    return heads + 2, ends


def _instance_bounds(data: bytes) -> tuple[list[int], list[int]]:
    starts: list[int] = []
    ends: list[int] = []
    index, end = 0, len(data)
    final = end - 1
    while index < end:
        # The loop that counts: an instance shorter than 128 bytes, as all numbers by address are.
        while index < final and data[index] == _INSTANCE_TAG and data[index + 1] < 0x80:
            starts.append(index + 2)
            index += 2 + data[index + 1]
            ends.append(index)
        if index > end:
            raise wire.WireError("an instance of a metric runs past the end of the metric")
        if index < end:
            number, content, behind = _one_field(data, index)
            if number == 3 and isinstance(content, bytes):
                starts.append(behind - len(content))
                ends.append(behind)
            index = behind
    return starts, ends


def _fast_instances(data: bytes, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Instances | None:
    """All instances at once if each is {id: uint, value: uint or double}; None where one is not."""
    raw = np.frombuffer(data, np.uint8)
    padded = np.concatenate([raw, np.zeros(16, np.uint8)])
    ids = _fast_submessage(padded, starts, _ID_TAG)
    if ids is None or ids[0].dtype != np.uint64:
        return None
    values = _fast_submessage(padded, ids[1], _VALUE_TAG)
    if values is None or not np.array_equal(values[1], ends):
        return None
    return Instances(ids=ids[0].astype(np.uint64), values=values[0])


def _fast_submessage(
    data: NDArray[np.uint8], indices: NDArray[np.int64], tag: int
) -> tuple[NDArray[np.uint64] | NDArray[np.float64], NDArray[np.int64]] | None:
    """Decode ``tag, length, {type, number}`` at each offset; return numbers and the offsets behind."""
    limit = len(data) - 16
    if not np.all(data[np.minimum(indices, limit)] == tag):
        return None
    length = data[indices + 1].astype(np.int64)
    behind = indices + 2 + length
    if np.any(length < 2) or np.any(behind > limit):
        return None
    kind = data[indices + 2]
    first = int(kind[0])
    if not np.all(kind == first):
        return None
    if first in {_UINT32, _UINT64}:
        numbers = _varints(data, indices + 3, length - 1)
        return None if numbers is None else (numbers, behind)
    if first == _DOUBLE and np.all(length == 9):
        window = data[(indices + 3)[:, None] + np.arange(8)]
        return np.ascontiguousarray(window).view("<f8").ravel().astype(np.float64), behind
    return None


def _varints(
    data: NDArray[np.uint8], indices: NDArray[np.int64], size: NDArray[np.int64]
) -> NDArray[np.uint64] | None:
    """Variable-length integers of known sizes; None where a size is not what the bytes say."""
    if np.any(size > _MAX_VARINT_BYTES):
        return None
    width = int(size[0])
    if np.all(size == width):  # as addresses are, always
        window = data[indices[:, None] + np.arange(width)]
        if not np.array_equal(np.all(window >= 0x80, axis=0), np.any(window >= 0x80, axis=0)) or (
            (window[0] >= 0x80).tolist() != [True] * (width - 1) + [False]
        ):
            return None
        parts = (window & np.uint8(0x7F)).astype(np.uint64) << (
            np.arange(width, dtype=np.uint64) * np.uint64(7)
        )
        joined: NDArray[np.uint64] = np.bitwise_or.reduce(parts, axis=1)
        return joined
    result = np.zeros(len(indices), np.uint64)
    for position in range(int(size.max())):
        inside = position < size
        byte = data[indices + position]
        if not np.array_equal((byte >= 0x80) & inside, position < size - 1):
            return None
        part = (byte & np.uint8(0x7F)).astype(np.uint64) << np.uint64(7 * position)
        result |= np.where(inside, part, np.uint64(0))
    return result


def _slow_instances(data: bytes, starts: list[int], ends: list[int]) -> Instances:
    ids: list[MetricValue | None] = []
    values: list[MetricValue | None] = []
    for start, end in zip(starts, ends, strict=True):
        fields = wire.parse(data[start:end])
        encoded_id, encoded_value = wire.blob(fields, 1), wire.blob(fields, 2)
        ids.append(None if encoded_id is None else decode_value(encoded_id))
        values.append(None if encoded_value is None else decode_value(encoded_value))
    return Instances(ids=_as_addresses(ids), values=_as_column(values))


def _as_addresses(ids: list[MetricValue | None]) -> NDArray[np.uint64] | tuple[MetricValue | None, ...]:
    if all(isinstance(value, int) for value in ids):
        return np.array(ids, np.uint64)
    return tuple(ids)


def _as_column(
    values: list[MetricValue | None],
) -> NDArray[np.float64] | NDArray[np.uint64] | tuple[MetricValue | None, ...]:
    if all(isinstance(value, int) for value in values):
        return np.array(values, np.uint64)
    if all(isinstance(value, int | float) for value in values):
        return np.array(values, np.float64)
    return tuple(values)
