# SPDX-License-Identifier: Apache-2.0
"""Small databases of HPCToolkit, version 4, written by the layout of FORMATS.md."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

SCOPES = ("point", "execution")
LEXICAL, CALL, INLINED = range(3)
FUNCTION, LOOP, LINE, INSTRUCTION = range(4)
IDENTIFIERS = ("SUMMARY", "NODE", "RANK", "THREAD", "GPUDEVICE", "GPUCONTEXT", "GPUSTREAM")


@dataclass
class Node:
    """A context; ``values`` are its own, by profile and metric."""

    id: int
    function: tuple[str, str, int] | None = None  # name, module, offset
    line: tuple[str, int] | None = None
    point: tuple[str, int] | None = None
    relation: int = CALL
    lexical: int = FUNCTION
    children: Sequence[Node] = ()
    values: Mapping[tuple[int, str], float] = field(default_factory=dict)


class _File:
    """Bytes with pointers into them."""

    def __init__(self, kind: bytes, sections: int) -> None:
        self.data = bytearray(b"HPCTOOLKIT" + kind + b"\4\0" + bytes(16 * sections))
        self._texts: dict[str, int] = {}

    def add(self, data: bytes) -> int:
        self.data += bytes(-len(self.data) % 8)
        place = len(self.data)
        self.data += data
        return place

    def text(self, text: str) -> int:
        if text not in self._texts:
            self._texts[text] = self.add(text.encode() + b"\0")
        return self._texts[text]

    def section(self, index: int, data: bytes) -> None:
        place = self.add(data)
        struct.pack_into("<QQ", self.data, 16 + 16 * index, len(data), place)

    def write(self, path: Path, footer: bytes) -> None:
        path.write_bytes(bytes(self.data) + footer)


def write_database(
    folder: Path,
    roots: Sequence[Node],
    *,
    ranks: Mapping[int, int] | Mapping[int, Mapping[str, int]] | None = None,
    grown: int = 0,
    traces: Mapping[int, Sequence[tuple[int, int]]] | None = None,
) -> Path:
    """A database.

    Args:
        folder: to write into.
        roots: main threads, each an entry.
        ranks: of each profile but the summary, or all that identifies it (default: profile 1 is rank 0).
        grown: bytes that each structure has behind what is known of it, as later versions may.
        traces: by profile, nanoseconds and contexts.
    """
    folder.mkdir(exist_ok=True)
    of_profile = {
        profile: dict(known) if isinstance(known, Mapping) else {"RANK": known}
        for profile, known in ({1: 0} if ranks is None else ranks).items()
    }
    names = sorted({name for node in _all(roots) for _, name in node.values})
    numbers = {
        (name, scope): 7 + index for index, (name, scope) in enumerate((n, s) for n in names for s in SCOPES)
    }
    values = _values(roots, numbers)
    _meta(folder / "meta.db", roots, numbers, grown)
    _profiles(folder / "profile.db", values, of_profile, grown)
    _contexts(folder / "cct.db", values, max((node.id for node in _all(roots)), default=0), grown)
    if traces is not None:
        _traces(folder / "trace.db", traces, grown)
    return folder


def _all(nodes: Sequence[Node]) -> Iterator[Node]:
    for node in nodes:
        yield node
        yield from _all(node.children)


def _values(
    roots: Sequence[Node], numbers: Mapping[tuple[str, str], int]
) -> dict[tuple[int, int, int], float]:
    """By profile, context and metric; those of a context hold what is below it."""
    values: dict[tuple[int, int, int], float] = defaultdict(float)

    def add(node: Node, above: tuple[int, ...]) -> None:
        for (profile, name), value in node.values.items():
            values[profile, node.id, numbers[name, "point"]] += value
            for context in (*above, node.id):
                values[profile, context, numbers[name, "execution"]] += value
        for child in node.children:
            add(child, (*above, node.id))

    for root in roots:
        add(root, (0,))
    return dict(values)


def _meta(path: Path, roots: Sequence[Node], numbers: Mapping[tuple[str, str], int], grown: int) -> None:
    file, more = _File(b"meta", 8), bytes(grown)
    file.section(0, struct.pack("<QQ", file.text("app"), 0))
    kinds = b"".join(struct.pack("<Q", file.text(name)) for name in IDENTIFIERS)
    file.section(1, struct.pack("<QB", file.add(kinds), len(IDENTIFIERS)))
    scopes = {name: file.add(struct.pack("<QBB", file.text(name), 1, 0)) for name in SCOPES}
    rows = b""
    for name in dict.fromkeys(name for name, _ in numbers):
        instances = b"".join(
            struct.pack("<QH6x", scopes[scope], numbers[name, scope]) + more for scope in SCOPES
        )
        rows += struct.pack("<QQQHH4x", file.text(name), file.add(instances), 0, len(SCOPES), 0) + more
    count = len({name for name, _ in numbers})
    sizes = (32 + grown, 16 + grown, 24, 0)
    file.section(2, struct.pack("<QI4B", file.add(rows), count, *sizes))
    paths: dict[str, int] = {}

    def place(name: str) -> int:
        if name not in paths:
            paths[name] = file.add(struct.pack("<I4xQ", 0, file.text(name)))
        return paths[name]

    def block(nodes: Sequence[Node]) -> tuple[int, int]:
        data = b"".join(context(node) for node in nodes)
        return (len(data), file.add(data)) if data else (0, 0)

    def context(node: Node) -> bytes:
        size, children = block(node.children)
        flags, words = 0, b""
        if node.function is not None:
            name, module, offset = node.function
            pointer = place(module) if module else 0
            function = file.add(struct.pack("<QQQQII", file.text(name), pointer, offset, 0, 0, 0))
            flags, words = flags | 1, words + struct.pack("<Q", function)
        if node.line is not None:
            flags, words = flags | 2, words + struct.pack("<QI4x", place(node.line[0]), node.line[1])
        if node.point is not None:
            flags, words = flags | 4, words + struct.pack("<QQ", place(node.point[0]), node.point[1])
        head = struct.pack(
            "<QQIBBBBH6x", size, children, node.id, flags, node.relation, node.lexical, len(words) // 8, 3
        )
        return head + words

    entries = b""
    for root in roots:
        size, children = block(root.children)
        entries += struct.pack("<QQIH2xQ", size, children, root.id, 1, file.text("main thread")) + more
    file.section(3, struct.pack("<QHB", file.add(entries), len(roots), 32 + grown))
    file.write(path, b"_meta.db")


def _profiles(
    path: Path,
    values: Mapping[tuple[int, int, int], float],
    identifiers: Mapping[int, Mapping[str, int]],
    grown: int,
) -> None:
    file = _File(b"prof", 2)
    summary: dict[tuple[int, int], float] = defaultdict(float)
    for (_, context, metric), value in values.items():
        summary[context, metric] += value
    tables = {0: dict(summary)} | {
        profile: {(c, m): value for (p, c, m), value in values.items() if p == profile}
        for profile in identifiers
    }
    rows = b""
    for profile, table in sorted(tables.items()):
        data, index, last = b"", b"", None
        for position, ((context, metric), value) in enumerate(sorted(table.items())):
            if context != last:
                index, last = index + struct.pack("<IQ", context, position), context
            data += struct.pack("<Hd", metric, value)
        about = 0
        if profile:
            known = identifiers[profile]
            tuples = b"".join(
                struct.pack("<BxHIQ", IDENTIFIERS.index(kind), 0, number, number)
                for kind, number in known.items()
            )
            about = file.add(struct.pack("<H6x", len(known)) + tuples)
        rows += struct.pack(
            "<QQIxxxxQQI4x",
            len(table),
            file.add(data),
            len(index) // 12,
            file.add(index),
            about,
            0 if profile else 1,
        ) + bytes(grown)
    file.section(0, struct.pack("<QIB", file.add(rows), len(tables), 48 + grown))
    file.section(1, b"")
    file.write(path, b"_prof.db")


def _contexts(path: Path, values: Mapping[tuple[int, int, int], float], last: int, grown: int) -> None:
    file = _File(b"ctxt", 1)
    rows = b""
    for context in range(last + 1):
        table = {(m, p): value for (p, c, m), value in values.items() if c == context}
        data, index, before = b"", b"", None
        for position, ((metric, profile), value) in enumerate(sorted(table.items())):
            if metric != before:
                index, before = index + struct.pack("<HQ", metric, position), metric
            data += struct.pack("<Id", profile, value)
        rows += struct.pack("<QQH6xQ", len(table), file.add(data), len(index) // 10, file.add(index)) + bytes(
            grown
        )
    file.section(0, struct.pack("<QIB", file.add(rows), last + 1, 32 + grown))
    file.write(path, b"__ctx.db")


def _traces(path: Path, traces: Mapping[int, Sequence[tuple[int, int]]], grown: int) -> None:
    file = _File(b"trce", 1)
    rows = b""
    for profile, points in traces.items():
        data = b"".join(struct.pack("<QI", time, context) for time, context in points)
        start = file.add(data)
        rows += struct.pack("<I4xQQ", profile, start, start + len(data)) + bytes(grown)
    times = [time for points in traces.values() for time, _ in points] or [0]
    header = struct.pack("<QIB3xQQ", file.add(rows), len(traces), 24 + grown, min(times), max(times))
    file.section(0, header)
    file.write(path, b"trace.db")
