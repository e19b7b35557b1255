# SPDX-License-Identifier: Apache-2.0
"""`make fuzz`: mutate for a time; what does not end as it should goes to the corpus, and stays a test."""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
import time
from collections import Counter

from tests.fuzz.mutators import MUTATORS
from tests.fuzz.targets import CORPUS, seeds, wrong

WEIGHTS = {"cubin": 4, "report": 2, "snapshot": 1}  # a cubin takes a millisecond, a snapshot fifty
LAST = CORPUS.parents[2] / "build" / "fuzz-last"


def main() -> int:
    """Run until the time is over; 1 where something was found."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--kind", choices=sorted(WEIGHTS), help="this kind of input alone")
    chosen = parser.parse_args()
    seed = chosen.seed if chosen.seed is not None else time.time_ns()
    rng = random.Random(seed)
    LAST.parent.mkdir(exist_ok=True)
    pool = {kind: list(found) for kind, found in seeds().items()}
    end, tried, found = time.monotonic() + chosen.seconds, Counter[str](), 0
    sys.stderr.write(f"seed {seed}\n")
    while time.monotonic() < end:
        (kind,) = [chosen.kind] if chosen.kind else rng.choices(list(WEIGHTS), list(WEIGHTS.values()))
        data = MUTATORS[kind](rng.choice(pool[kind]), rng)
        for _ in range(rng.choice((0, 0, 1, 3))):
            data = MUTATORS[kind](data, rng)
        tried[kind] += 1
        if tried.total() % 1000 == 0:
            sys.stderr.write(f"{tried.total()} inputs, {found} found\n")
        LAST.write_bytes(data)  # what remains where a native library takes this process along
        what = wrong(kind, data)
        if what is not None:
            found += 1
            place = CORPUS / f"{kind}-{hashlib.sha256(data).hexdigest()[:16]}"
            CORPUS.mkdir(exist_ok=True)
            place.write_bytes(data)
            sys.stdout.write(f"{place.name}: {what}\n")
    sys.stdout.write(f"{tried.total()} inputs from seed {seed} {dict(tried)}, {found} found\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
