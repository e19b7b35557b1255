# SPDX-License-Identifier: Apache-2.0
"""What an H100 sampled of our kernels: whom their stalls are blamed on, and all advice, word by word.

``pytest --snapshot-update`` rewrites it: the difference is what a change of the blamer, an estimate or a
rule does to measured kernels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from tests.blame_rows import rows
from tests.kept import kept
from tests.validation.captures import FOLDER, Captures

from gpadvisor.pipeline.advise import AdvisedFile, advise_file
from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.request import Request
from gpadvisor.pipeline.settings import Settings
from gpadvisor.pipeline.snapshots import disassemble_all
from gpadvisor.report.text import render_text
from gpadvisor.store.snapshot import snapshot_bytes

pytestmark = [pytest.mark.nvdisasm, pytest.mark.usefixtures("reads_here")]
LARGE = {"cell_voltage"}
"""Takes as long as ten others."""
SHOWN = 0.01
"""Share of a kernel's samples from which an instruction that is blamed has a line of its own."""


class Text(SingleFileSnapshotExtension):
    _write_mode = WriteMode.TEXT
    file_extension = "txt"


@cache
def _captures() -> Captures:
    return Captures(FOLDER / "h100")


def _with_code(kernel: str) -> bytes:
    """A snapshot of a kernel as it was before its cure, which needs no disassembler."""
    profile = _captures().report(kernel, "before")
    assert profile is not None
    wanted = {kernel.binary for kernel in profile.kernels}
    binaries = {digest: data for digest, data in profile.binaries.items() if digest in wanted}
    profile = replace(profile, binaries=binaries)
    listings, problems = disassemble_all(profile, Settings(), lambda _: None)
    assert not problems
    return snapshot_bytes(replace(profile, disassemblies=listings))


@pytest.fixture(scope="module", params=[name for name in _captures().kernels() if name not in LARGE])
def advised(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AdvisedFile:
    """Advice on one kernel."""
    kernel = str(request.param)
    folder = tmp_path_factory.mktemp(kernel)
    path = folder / f"{kernel}.gpadvisor"
    archives = b"".join(path.read_bytes() for path in sorted((FOLDER / "h100").iterdir()))
    path.write_bytes(kept(("captured", kernel), archives, lambda: _with_code(kernel)))
    wanted = Request(settings=Settings(top=100), show_all=True, root=folder, may_compile=False)
    return advise_file(path, wanted, lambda _: None, Cache(None))


def test_advice(advised: AdvisedFile, snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpadvisor.report.text.__version__", "1.2.3")
    report = render_text(replace(advised.advice, path="captured"), width=132, details=True)
    assert report == snapshot(extension_class=Text)


def test_blame(advised: AdvisedFile, snapshot: SnapshotAssertion) -> None:
    assert "\n".join(_blame(advised)) + "\n" == snapshot(extension_class=Text)


def _blame(advised: AdvisedFile) -> Iterator[str]:
    """Samples and latency samples of each reason by what became of them, then by instruction blamed."""
    (kernel,) = advised.kernels
    context = kernel.analysed.context
    assert context.blame is not None
    samples: Counter[tuple[str, str, str]] = Counter()
    latency: Counter[tuple[str, str, str]] = Counter()
    places: Counter[tuple[int, int, str]] = Counter()
    for row in rows(context.blame):
        samples[row.reason, row.role, row.dependency] += row.samples
        latency[row.reason, row.role, row.dependency] += row.latency
        if row.definition is not None:
            places[row.function, row.definition, row.dependency] += row.samples
    for key, count in sorted(samples.items()):
        yield f"{count:8} {latency[key]:8}  {' '.join(key)}"
    for (function, index, dependency), count in sorted(places.items()):
        if count >= SHOWN * context.blame.total_samples:
            instruction = context.program.functions[function].instructions[index]
            yield f"{count:8} {instruction.pc:#06x}  {instruction.text}  {dependency}"
