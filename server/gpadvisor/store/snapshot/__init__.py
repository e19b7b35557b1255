# SPDX-License-Identifier: Apache-2.0
"""The ``.gpadvisor`` snapshot: one zip file with a profile in it, in forms that other tools open."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final

from gpadvisor import __version__
from gpadvisor.errors import ProfileError, ProfileFormatError
from gpadvisor.model.profile import Profile
from gpadvisor.store.formats import ProfileKind, kind_of, read_bytes
from gpadvisor.store.parts import JsonObject, Parts, digest_of, put_together, take_apart
from gpadvisor.store.paths import TIMELINE_CALLS, TIMELINE_WORK
from gpadvisor.store.snapshot.redaction import redacted
from gpadvisor.store.snapshot.tables import SCHEMAS, decode_tables, encode_tables

SCHEMA: Final = 1
MANIFEST: Final = "manifest.json"
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_MAX_MEMBERS: Final = 100_000
_MAX_MEMBER_BYTES: Final = 1 << 30
_MAX_TOTAL_BYTES: Final = 4 << 30
_MAX_RATIO: Final = 1000  # deflate reaches 1032; real members stay below 50
_BLOB: Final = re.compile(
    r"(?:(binaries)/([0-9a-f]{64})\.cubin|(disassembly)/([0-9a-f]{64})\.json|(sources)/([0-9a-f]{64}))"
)
ACROSS: Final = frozenset(f"across_{name}" for name in ("samples", "launches", "metrics", "times", "ranks"))
"""Tables of a snapshot that sums up others, which merging needs and reading it does not."""
CELLS_TABLE: Final = "across_cells"
"""What each of these has at each place, where it was asked for."""
TIMELINE: Final = frozenset({TIMELINE_WORK, TIMELINE_CALLS})
"""Tables of a run on the clock; see ``store.timeline.stored``."""
_OPTIONAL: Final = ("lines", "launch_paths")  # of a manifest
_FOLDERS: Final = {"binaries": ".cubin", "disassembly": ".json", "sources": ""}
_AGAIN: Final = "import it again from the report it came from"


def write_snapshot(profile: Profile, path: Path, *, redact: bool = False) -> None:
    """Write a snapshot, whole or not at all; ``redact`` removes paths, hosts and command lines.

    A link stays one and its target is replaced; a device or a pipe is written to, never replaced.
    """
    write_whole(snapshot_bytes(redacted(profile) if redact else profile), path)


def write_whole(data: bytes, path: Path) -> None:
    """The bytes of a snapshot, in the same way."""
    temporary: Path | None = None
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            path.write_bytes(data)
            return
        target = path.resolve()
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
            temporary = Path(file.name)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(target)
        temporary = None
    except OSError as error:
        raise ProfileError(
            f"the snapshot {path} ({len(data)} bytes) cannot be written: {error.strerror or error};"
            " make room or choose another place with -o"
        ) from error
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                temporary.unlink()


def snapshot_bytes(profile: Profile) -> bytes:
    """The bytes of a snapshot: the same for the same profile and package versions."""
    return pack(take_apart(profile))


def pack(
    parts: Parts, head: Mapping[str, object] | None = None, files: Mapping[str, bytes] | None = None
) -> bytes:
    """The bytes of a snapshot of parts, with more for its manifest and more tables; see ``store.ranks``."""
    members: dict[str, bytes] = {MANIFEST: _manifest(parts, head or {})}
    for name, data in encode_tables(parts.document["kernels"], parts.tables).items():
        members[f"{name}.parquet"] = data
    members |= files or {}
    for kind, suffix in _FOLDERS.items():
        for key in sorted(parts.blobs[kind]):
            members[f"{kind}/{key}{suffix}"] = parts.blobs[kind][key]
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in members.items():
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.create_system = 3
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_STORED if name.endswith(".parquet") else zipfile.ZIP_DEFLATED
            archive.writestr(entry, data, compresslevel=9)
    return out.getvalue()


def _manifest(parts: Parts, head: Mapping[str, object]) -> bytes:
    document: JsonObject = {
        "schema": SCHEMA,
        "tool": f"gpadvisor {__version__}",
        "digest": digest_of(parts),
        "profile": parts.document["profile"],
        "devices": _devices(parts.document["kernels"]),
        "launches": len(parts.document["kernels"]),
        "sources": parts.document["sources"],
        "problems": parts.document["problems"],
        **{name: parts.document[name] for name in _OPTIONAL if name in parts.document},
        **head,
    }
    return (json.dumps(document, indent=1) + "\n").encode()


def _devices(kernels: list[JsonObject]) -> list[str]:
    return sorted(
        {f"{kernel['device']['name'] or 'unknown'} ({kernel['device']['arch']})" for kernel in kernels}
    )


def read_snapshot(data: bytes) -> Profile:
    """Read a snapshot in this process; snapshots from others go through ``isolation.being_read``."""
    members = _members(data)
    manifest = _parsed(members.pop(MANIFEST, None))
    missing = [name for name in SCHEMAS if f"{name}.parquet" not in members]
    if missing:
        raise ProfileFormatError(f"the snapshot lacks {missing[0]}.parquet; {_AGAIN}")
    try:
        kernels, tables = decode_tables({name: members[f"{name}.parquet"] for name in SCHEMAS})
        parts = Parts(
            document={
                "profile": manifest["profile"],
                "kernels": kernels,
                "sources": manifest["sources"],
                "problems": manifest["problems"],
                **{name: manifest[name] for name in _OPTIONAL if name in manifest},
            },
            tables=tables,
            blobs=_blobs(members),
        )
        profile = put_together(parts)
    except (KeyError, IndexError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ProfileFormatError(f"the snapshot's tables do not fit together ({error}); {_AGAIN}") from error
    if digest_of(parts) != manifest.get("digest"):
        raise ProfileFormatError(
            f"the snapshot's rows do not have the digest that its manifest states; {_AGAIN}"
        )
    return profile


def export_snapshot(path: Path, directory: Path) -> tuple[Path, ...]:
    """Unpack a snapshot into a new or empty directory; return the files written."""
    data = read_bytes(path)
    if kind_of(data) is not ProfileKind.SNAPSHOT:
        raise ProfileFormatError(
            f"{path} is a report, not a snapshot; 'gpadvisor import {path.name}' makes one of it"
        )
    members = _members(data)
    written: list[Path] = []
    existed = directory.exists()
    try:
        if directory.exists() and any(directory.iterdir()):
            raise ProfileError(f"{directory} is not empty; name a new directory for the files of {path}")
        for name, data in members.items():
            target = directory / name  # _members let only names of known form through
            target.parent.mkdir(parents=True, exist_ok=True)
            written.append(target)
            target.write_bytes(data)
    except OSError as error:
        for target in written:
            with contextlib.suppress(OSError):
                target.unlink()
        _remove_folders(directory, {target.parent for target in written}, itself=not existed)
        raise ProfileError(
            f"{path} cannot be unpacked into {directory}: {error.strerror or error}; choose another directory"
        ) from error
    return tuple(written)


def _remove_folders(directory: Path, paths: set[Path], *, itself: bool) -> None:
    """Take back the empty folders of an export that failed."""
    for folder in (*sorted(paths - {directory}), *([directory] if itself else [])):
        with contextlib.suppress(OSError):
            folder.rmdir()


def _members(data: bytes) -> dict[str, bytes]:
    """All members, after looking at names and sizes."""
    with opened(io.BytesIO(data), len(data)) as (archive, _):
        return {entry.filename: archive.read(entry) for entry in archive.infolist()}


@contextlib.contextmanager
def opened(stream: IO[bytes], size: int) -> Iterator[tuple[zipfile.ZipFile, JsonObject]]:
    """An archive of as many bytes and its manifest; nothing is unpacked from a suspicious one.

    Raises:
        ProfileFormatError: it is no snapshot, damaged, or of a newer format.
    """
    try:
        with zipfile.ZipFile(stream) as archive:
            entries = archive.infolist()
            _refuse(entries, size)
            # Before anything else, as a newer schema may have other members.
            manifest = _parsed(archive.read(MANIFEST))
            strange = [entry.filename for entry in entries if not _known(entry.filename)]
            if strange:
                raise ProfileFormatError(
                    f"the snapshot has a member {strange[0]!r} that none should have; {_AGAIN}"
                )
            yield archive, manifest
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        OSError,
        NotImplementedError,
        RuntimeError,
        ValueError,
    ) as error:
        raise ProfileFormatError(f"the snapshot's zip archive is damaged ({error}); {_AGAIN}") from error


def _refuse(entries: list[zipfile.ZipInfo], size: int) -> None:
    names = [entry.filename for entry in entries]
    if MANIFEST not in names:
        raise ProfileFormatError(
            f"the zip file has no {MANIFEST}, so it is no snapshot; give a .gpadvisor file or a report"
        )
    if len(entries) > _MAX_MEMBERS or len(set(names)) != len(names):
        raise ProfileFormatError(f"the snapshot has too many members or one name twice; {_AGAIN}")
    if sum(entry.file_size for entry in entries) > min(_MAX_TOTAL_BYTES, _MAX_RATIO * size):
        raise ProfileFormatError(f"the snapshot would unpack to far more than any profile has; {_AGAIN}")
    for entry in entries:
        plain = entry.compress_type in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED} and not entry.flag_bits & 1
        if not plain or entry.file_size > _MAX_MEMBER_BYTES:
            raise ProfileFormatError(
                f"the snapshot's member {entry.filename!r} is encrypted or too large; {_AGAIN}"
            )


def _known(name: str) -> bool:
    table = name.removesuffix(".parquet")
    return (
        name == MANIFEST
        or (
            name != table
            and (table in SCHEMAS or table in ACROSS or table in TIMELINE or table == CELLS_TABLE)
        )
        or _BLOB.fullmatch(name) is not None
    )


def _parsed(data: bytes | None) -> JsonObject:
    try:
        manifest: Any = json.loads(data or b"")
        schema = manifest["schema"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ProfileFormatError(f"the snapshot's {MANIFEST} is damaged; {_AGAIN}") from error
    if not isinstance(schema, int) or schema > SCHEMA:
        writer = manifest.get("tool", "a newer gpadvisor")
        raise ProfileFormatError(
            f"the snapshot has schema {schema}, written by {writer}; this gpadvisor {__version__} reads up to"
            f" schema {SCHEMA}: upgrade it with pip install -U gpadvisor"
        )
    return dict(manifest)


def _blobs(members: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
    result: dict[str, dict[str, bytes]] = {kind: {} for kind in _FOLDERS}
    for name, data in members.items():
        match = _BLOB.fullmatch(name)
        if match is None:
            continue
        kind, key = (group for group in match.groups() if group is not None)
        result[kind][key] = checked_blob(kind, key, data)
    return result


def checked_blob(kind: str, key: str, data: bytes) -> bytes:
    """The bytes of a member; ProfileFormatError where a binary or a source is not what its name says."""
    if kind != "disassembly" and hashlib.sha256(data).hexdigest() != key:
        raise ProfileFormatError(f"the snapshot's member {kind}/{key} is not what its name says; {_AGAIN}")
    return data
