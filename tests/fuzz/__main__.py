# SPDX-License-Identifier: Apache-2.0
"""`make fuzz`: mutate for a time; what does not end as it should goes to the corpus, and stays a test."""

from __future__ import annotations

import argparse
import hashlib
import itertools
import os
import random
import sys
import time
from collections import Counter

from tests.fuzz.mutators import FORMATS
from tests.fuzz.targets import CORPUS, quick, seeds, wrong

SHARES = {"protobuf": 4, "ELF": 8, "DWARF": 4, "zip": 1, "Parquet": 1, "records": 2}
"""A cubin takes some milliseconds, a snapshot fifty."""
STORED = 0.25
"""Share that also goes through a snapshot, which takes longer than all else."""
LAST = CORPUS.parents[2] / "build"


def main() -> int:
    """Run until the time is over or the inputs are; 1 where something was found."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--format", choices=sorted(FORMATS), help="this format alone")
    chosen = parser.parse_args()
    seed = chosen.seed if chosen.seed is not None else time.time_ns()
    rng = random.Random(seed)
    LAST.mkdir(exist_ok=True)
    pool = {kind: list(found) for kind, found in seeds().items()}
    turns = itertools.cycle(
        [chosen.format] if chosen.format else [name for name, share in SHARES.items() for _ in range(share)]
    )
    end, tried, found = time.monotonic() + chosen.seconds, Counter[str](), 0
    sys.stderr.write(f"seed {seed}\n")
    with quick(), (LAST / f"fuzz-last-{os.getpid()}").open("wb", buffering=0) as last:
        while time.monotonic() < end:
            name = next(turns)
            kind, mutated = FORMATS[name]
            data = mutated(rng.choice(pool[kind]), rng)
            for _ in range(rng.choice((0, 0, 1, 3))):
                data = mutated(data, rng)
            tried[name] += 1
            if tried.total() % 1000 == 0:
                sys.stderr.write(f"{tried.total()} inputs, {found} found\n")
            # What remains where a native library takes this process along.
            os.pwrite(last.fileno(), data, 0)
            last.truncate(len(data))
            what = wrong(kind, data, stored=rng.random() < STORED)
            if what is not None:
                found += 1
                place = CORPUS / f"{kind}-{hashlib.sha256(data).hexdigest()[:16]}"
                CORPUS.mkdir(exist_ok=True)
                place.write_bytes(data)
                sys.stdout.write(f"{place.name}: {what}\n")
    counts = ", ".join(f"{count} {name}" for name, count in tried.items())
    sys.stdout.write(f"{tried.total()} inputs from seed {seed} ({counts}), {found} found\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
