# SPDX-License-Identifier: Apache-2.0
"""Modules of a report: references are handles of a process, repeated and used again."""

from __future__ import annotations

from tests.ncu_writer import _string, _sub, _varint_field

from gpadvisor.store.ncu.report import _Parser


def _source(reference: int, cubin: bytes = b"", symbol: str = "") -> bytes:
    message = _varint_field(1, reference)
    if cubin:
        message += _sub(4, cubin)
    if symbol:
        row = _string(1, symbol) + _varint_field(2, 0x1000) + _varint_field(3, 5)
        message += _sub(9, _sub(1, row))
    return message


def _reference(number: int) -> bytes:
    return _varint_field(1, number)


def test_a_message_without_binary_adds_to_the_one_before() -> None:
    parser = _Parser()
    parser.source(0, 1, _source(7, b"cubin"))
    for at in range(1, 4):
        parser.source(at, 1, _source(7, symbol="helper"))
    (entry,) = parser.sources
    assert entry.source.cubin == b"cubin"
    assert [function.name for function in entry.source.functions] == ["helper"]


def test_two_processes_may_use_one_number() -> None:
    parser = _Parser()
    parser.source(0, 1, _source(7, b"first"))
    parser.source(1, 2, _source(7, b"second"))
    found = [parser.source_of(2, process, _reference(7)) for process in (1, 2, 3)]
    assert [source and source.cubin for source in found] == [b"first", b"second", None]


def test_a_number_used_again_for_another_binary() -> None:
    parser = _Parser()
    parser.source(1, 1, _source(7, b"first"))
    parser.source(3, 1, _source(7, b"second"))
    found = [parser.source_of(at, 1, _reference(7)) for at in range(5)]
    # The launch in front of both was written before its module was.
    assert [source and source.cubin for source in found] == [b"first"] * 3 + [b"second"] * 2


def test_a_reference_to_nothing() -> None:
    assert _Parser().source_of(0, 1, _reference(7)) is None
    assert _Parser().source_of(0, 1, None) is None
