# SPDX-License-Identifier: Apache-2.0
"""What reads calling contexts of other profilers in a child process."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from gpadvisor.errors import GpadvisorError
from gpadvisor.model.contexts import MeasuredContexts
from gpadvisor.store.hatchet import read_hatchet
from gpadvisor.store.hpctoolkit.contexts import contexts_of
from gpadvisor.store.hpctoolkit.database import read_database
from gpadvisor.store.timeline.paths import run_contexts
from gpadvisor.store.traces import is_trace


def read_contexts(path: Path) -> MeasuredContexts:
    """The tree of a database of HPCToolkit, of a file of Proton or hatchet, or of a traced run.

    Raises:
        ProfileFormatError: it is none, or damaged.
    """
    if path.is_dir():
        return contexts_of(read_database(path))
    return run_contexts(path) if is_trace(path) else read_hatchet(path)


def answer(request: bytes) -> bytes:
    """Read the contexts at a ``path``; an error is its ``message`` (JSON)."""
    parameters = json.loads(request)
    reply: dict[str, Any]
    try:
        contexts = read_contexts(Path(parameters["path"]))
        places = [asdict(place) | {"kind": place.kind.value} for place in contexts.places]
        reply = {**asdict(replace(contexts, places=())), "places": places}
    except GpadvisorError as error:
        reply = {"message": str(error)}
    except MemoryError:
        reply = {"message": f"{parameters['path']} needs too much memory"}
    return json.dumps(reply).encode()
