# SPDX-License-Identifier: Apache-2.0
"""What several tests ask a tool for, asked once in a run: by content, in a folder its processes share.

What the compiler and the disassembler of one version say of a content is kept for later runs of a week, too.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

FOLDER = "GPADVISOR_TEST_KEPT"
ANSWERS = "GPADVISOR_TEST_ANSWERS"
"""Names the folder of what compiler and disassembler said; empty where each run asks them anew."""
_WEEK = 7 * 24 * 3600.0

# Stands before nvdisasm, whose start is most of what it takes for a kernel. An answer has its status when it
# is whole, so that two that ask at once do not meet; one that names the file, or a crash, is not kept.
_ASKING = """\
#!/bin/sh
for file; do :; done
[ -f "$file" ] || exec "{tool}" "$@"
options=${{*%"$file"}}
asked=$(printf '%s\\n' "$options" | cat - "$file" | sha256sum)
answer={folder}/${{asked%% *}}
if [ ! -f "$answer.status" ]; then
    own=$answer.$$
    "{tool}" "$@" >"$own" 2>"$own.said"
    echo $? >"$own.status"
    if [ "$(cat "$own.status")" -gt 127 ] || grep -qF "$file" "$own" "$own.said"; then exec "{tool}" "$@"; fi
    for part in "" .said .status; do mv "$own$part" "$answer$part"; done
fi
cat "$answer"
cat "$answer.said" >&2
exit "$(cat "$answer.status")"
"""


@contextlib.contextmanager
def kept_together() -> Iterator[None]:
    """An empty folder for this process and those that it starts, until the end."""
    before = os.environ.get(FOLDER)
    with tempfile.TemporaryDirectory(prefix="kept-") as folder:
        os.environ[FOLDER] = folder
        try:
            yield
        finally:
            os.environ.pop(FOLDER)
            if before is not None:
                os.environ[FOLDER] = before


def kept_answers(tool: Path) -> Path:
    """The folder for a disassembler and the installed compilers, without what is older than a week."""
    digest = hashlib.sha256(tool.read_bytes())
    for one in sorted(f"{each.name} {each.version}" for each in importlib.metadata.distributions()):
        if one.startswith(("cuda-", "nvidia-")):
            digest.update(one.encode())
    parent = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "gpadvisor-tests")
    folder = parent / digest.hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    for path in parent.glob("*/*"):
        with contextlib.suppress(FileNotFoundError):  # two runs that begin at once
            if path.stat().st_mtime < time.time() - _WEEK:
                path.unlink()
    return folder


def kept(
    asked: tuple[str, ...], content: bytes, make: Callable[[], bytes], *, of_tool: bool = False
) -> bytes:
    """The answer to what is asked of a content; made anew where no folder is shared.

    An answer of a tool depends on its version and nothing else, so that later runs have it, too.
    """
    folder = (of_tool and os.environ.get(ANSWERS)) or os.environ.get(FOLDER)
    if folder is None:
        return make()
    digest = hashlib.sha256(repr(asked).encode())
    digest.update(content)
    path = Path(folder, digest.hexdigest())
    if not path.exists():
        handle, made = tempfile.mkstemp(dir=folder)
        with os.fdopen(handle, "wb") as stream:
            stream.write(make())
        Path(made).replace(path)  # two that make it at once make the same
    return path.read_bytes()


def kept_disassembler(tool: Path) -> Path:
    """nvdisasm for all processes of a run, which is asked once for each content: in a folder for PATH."""
    path = Path(os.environ[FOLDER], "bin", tool.name)
    path.parent.mkdir()
    answers = os.environ.get(ANSWERS) or path.parent
    path.write_text(_ASKING.format(tool=tool, folder=answers), encoding="utf-8")
    path.chmod(0o755)
    return path
