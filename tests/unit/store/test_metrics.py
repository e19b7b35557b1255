# SPDX-License-Identifier: Apache-2.0
"""Instances decoded as columns agree with one-by-one decoding, and unusual ones still come out."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
import pytest
from tests.ncu_writer import _string, _sub, _varint_field

from gpadvisor.store.ncu import metrics, wire


def _message(rows: list[tuple[bytes, bytes]], *, value: bytes = b"") -> bytes:
    out = _varint_field(1, 3) + (_sub(2, value) if value else b"")
    return out + b"".join(_sub(3, _sub(1, key) + _sub(2, number)) for key, number in rows)


def _double(number: float) -> bytes:
    return b"\x19" + struct.pack("<d", number)


BIG = [0, 1, 127, 128, 300, 1 << 20, (1 << 48) - 16, (1 << 53), (1 << 64) - 1]


def test_addresses_and_counts_of_all_sizes() -> None:
    rows = [(_varint_field(5, number), _varint_field(5, number)) for number in BIG]
    found = metrics.decode_instances(_message(rows))
    assert isinstance(found.ids, np.ndarray)
    assert isinstance(found.values, np.ndarray)
    assert found.ids.tolist() == BIG
    assert found.values.tolist() == BIG
    assert found.values.dtype == np.uint64


@pytest.mark.parametrize("count", [1, 3, 400])
@pytest.mark.parametrize(
    "values",
    [
        lambda at: _varint_field(5, at * at),
        lambda at: _varint_field(4, 7 + at % 2),
        lambda at: _double(at / 3),
        lambda at: _double(1.5) if at % 2 else _varint_field(5, at),
        lambda at: _string(1, f"text {at}"),
    ],
)
def test_few_and_many_instances_are_decoded_alike(
    count: int, values: Callable[[int], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = _message([(_varint_field(5, 1 << 40 | 16 * at), values(at)) for at in range(count)])
    columns = []
    for few in (0, 1 << 20):
        monkeypatch.setattr(metrics, "_FEW_BYTES", few)
        columns.append(metrics.decode_instances(data))
    first, second = columns
    assert len(first) == len(second) == count
    assert np.asarray(first.ids).tolist() == np.asarray(second.ids).tolist()
    assert np.asarray(first.values).tolist() == np.asarray(second.values).tolist()
    assert np.asarray(first.values).dtype == np.asarray(second.values).dtype


def _alike(first: metrics.Instances, second: metrics.Instances) -> bool:
    return all(
        np.asarray(one).dtype == np.asarray(other).dtype
        and np.asarray(one).tolist() == np.asarray(other).tolist()
        for one, other in ((first.ids, second.ids), (first.values, second.values))
    )


@pytest.mark.parametrize(
    "last",
    [
        _message([]),
        _message([(_varint_field(5, 1 << 40), _varint_field(5, 9))], value=_double(2.0)),
        _message([(_varint_field(5, 1 << 40), _double(0.5))]),
        _message([(_string(1, "IMAD"), _varint_field(5, 9))]),
        _message([(_varint_field(5, 1 << 40), _varint_field(5, 9))]) + _varint_field(1, 3),
    ],
)
def test_metrics_decoded_together_are_as_each_by_itself(last: bytes) -> None:
    counts = [
        _message([(_varint_field(5, 1 << 40 | 16 * at), _varint_field(5, at**power)) for at in range(90)])
        for power in (1, 2, 3)
    ]
    for messages in (counts, [*counts, last], [last, *counts], [counts[0], last, counts[1]]):
        found = metrics.decode_together(messages)
        assert len(found) == len(messages)
        assert all(map(_alike, found, map(metrics.decode_instances, messages)))


def test_an_instance_cut_by_the_end_of_its_metric_does_not_go_on_in_the_next() -> None:
    tag = 0x1A  # as a count, it looks as if an instance began with it
    whole = b"".join(
        _sub(3, _sub(1, _varint_field(5, 1 << 40 | 16 * at)) + _sub(2, _varint_field(5, tag)))
        for at in range(90)
    )
    assert whole[-1] == tag
    assert len(metrics.decode_together([whole, whole])[1]) == 90
    with pytest.raises(wire.WireError):
        metrics.decode_together([whole[:-1], whole[-1:] + whole])


def test_doubles() -> None:
    numbers = [0.0, 1.5, -2.25, 1e300]
    rows = [(_varint_field(5, at), _double(number)) for at, number in enumerate(numbers)]
    found = metrics.decode_instances(_message(rows))
    assert isinstance(found.values, np.ndarray)
    assert found.values.tolist() == numbers


def test_mixed_types_take_the_slow_way() -> None:
    rows = [(_varint_field(5, 16), _varint_field(5, 7)), (_varint_field(4, 32), _double(2.5))]
    found = metrics.decode_instances(_message(rows))
    assert isinstance(found.ids, np.ndarray)
    assert isinstance(found.values, np.ndarray)
    assert found.ids.tolist() == [16, 32]
    assert found.values.tolist() == [7.0, 2.5]


def test_names_as_ids_and_text_values() -> None:
    rows = [(_string(1, "IMAD"), _varint_field(5, 9)), (_string(1, "LDG"), _string(1, "many" * 60))]
    found = metrics.decode_instances(_message(rows))
    assert found.ids == ("IMAD", "LDG")
    assert found.values == (9, "many" * 60)


def test_value_and_name_stand_before_or_behind_instances() -> None:
    instance = _sub(3, _sub(1, _varint_field(5, 16)) + _sub(2, _varint_field(5, 1)))
    before = _varint_field(1, 3) + _sub(2, _varint_field(5, 8)) + instance
    behind = instance + _varint_field(1, 3) + _sub(2, _varint_field(5, 8))
    assert metrics.decode_metric(before) == (3, 8, True)
    assert metrics.decode_metric(behind) == (3, 8, True)
    assert metrics.decode_metric(_varint_field(1, 3)) == (3, None, False)
    assert len(metrics.decode_instances(behind)) == 1


@pytest.mark.parametrize("cut", range(1, 14))
def test_a_cut_metric_is_an_error_or_shorter(cut: int) -> None:
    whole = _message([(_varint_field(5, 1 << 40), _varint_field(5, 77))])
    try:
        found = metrics.decode_instances(whole[:-cut])
    except wire.WireError:
        return
    assert len(found) == 0


def test_float32_and_unknown_types() -> None:
    assert metrics.decode_value(b"\x15" + struct.pack("<f", 0.5)) == 0.5
    assert metrics.decode_value(b"") is None
    assert metrics.decode_value(_varint_field(9, 3)) is None
