# SPDX-License-Identifier: Apache-2.0
"""Results of long validations, kept under ``build/validation`` until something they depend on changes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from tests.kernels import FOLDER, ROOT

from gpadvisor.pipeline.cache import Cache, file_digest, installation_digest


def finished(kind: str, parts: object, kernel: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The stored result for these parts, this kernel's files and this code; made and stored where missing."""
    store = Cache(ROOT / "build" / "validation")
    key = store.key(kind, {"parts": parts, "kernel": _kernel_digest(kernel), "code": _code_digest()})
    stored = store.get(key)
    if stored is not None:
        known: dict[str, Any] = json.loads(stored)
        return known
    found = make()
    store.put(key, json.dumps(found).encode())
    return found


@cache
def _code_digest() -> str:
    digest = hashlib.sha256(installation_digest().encode())
    for path in sorted([*Path(__file__).parent.glob("*.py"), *Path(__file__).parent.parent.glob("*.py")]):
        digest.update(file_digest(path).encode())
    return digest.hexdigest()


def _kernel_digest(name: str) -> str:
    digest = hashlib.sha256()
    for path in sorted((FOLDER / name).iterdir()):
        if path.is_file():
            digest.update(f"{path.name} {file_digest(path)};".encode())
    return digest.hexdigest()
