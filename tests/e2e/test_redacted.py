# SPDX-License-Identifier: Apache-2.0
"""What ``import --redact`` leaves, searched byte by byte: from each format read, in each format written."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
import zstandard
from tests.collection_writer import (
    context,
    device,
    header,
    kernel,
    launch,
    module,
    name,
    note,
    process,
    reasons,
    samples,
    segment,
    write,
)
from tests.command_line import gpadvisor
from tests.cubin_parts import Part, Sym, code, elf, unit
from tests.ncu_writer import FrameSpec, LaunchSpec, RuleSpec, write_report

from gpadvisor.store.load import load_profile

FOLDER = "/home/sécretuser/secret project"
SECRETS = [b"cret", "écret".encode()]
INPUTS = ["run.ncu-rep", "run.ncu-repz", "run.gpadvisor", "collection"]
OUTPUTS = [
    ("advise", "--details", "--all"),
    ("advise", "--format", "json"),
    ("advise", "--format", "sarif"),
    ("advise", "--format", "markdown"),
    ("advise", "--format", "html", "-o", "page.html"),
    ("export", "exported"),
    ("tree", "--format", "json"),
    ("blame", "--format", "csv"),
    ("potential",),
    ("roofline", "--format", "svg"),
]


def secret_cubin() -> bytes:
    """With its folders in both line tables, in strings of constants, and in Blackwell's second sections."""
    table, _ = unit(b"", directories=(FOLDER, "secret sub"))
    said = f"\0{FOLDER}/secret sub/k.cuh\0secret sub/k.cuh\0".encode()
    sections = [
        *(Part(section, table) for section in (".debug_line", ".nv.merc.debug_line")),
        *(Part(section, said) for section in (".nv.global.init", ".nv.constant3", ".nv.merc.nv.global.init")),
        *(Part(section, said) for section in (".debug_str", ".nv.merc.debug_info", ".nv_debug_ptx_txt")),
    ]
    return elf([Part(".text.k", code(8)), *sections], [Sym("k", ".text.k", 0, 128)])


def made(kind: str, folder: Path) -> Path:
    """An input with something secret in each place."""
    folder.mkdir()
    path, cubin = folder / kind, secret_cubin()
    command = f"{FOLDER}/app --secretflag"
    if kind == "collection":
        body = [
            process(command=command),
            *(device(), context(), reasons([(1, "wait")])),
            *(name("k"), module(cubin), kernel("k", 1), launch("k", 1), samples([(77, 16, "k", 1, 1, 50)])),
            note(3, 7, f"no module of {FOLDER}/secret.so"),
        ]
        return write(path, header() + segment(body), images=[cubin])
    spec = LaunchSpec(
        kernel="k",
        cubin=cubin,
        samples={("k", 16, "wait"): (50, 40)},
        sources={f"{FOLDER}/k.cu": "// secret text", "secret sub/k.cuh": "// secret text"},
        call_stack=[FrameSpec(module=f"{FOLDER}/app", address=16, function="main", file=f"{FOLDER}/m.cc")],
        rules=[RuleSpec(identifier="r", message=f"See {FOLDER}/k.cu on secrethost, L1/TEX.")],
    )
    report = write_report([spec], host="secrethost", command=command, executable=f"{FOLDER}/app")
    path.write_bytes(zstandard.compress(report) if kind.endswith("z") else report)
    if kind.endswith(".gpadvisor"):
        (folder / "plain.ncu-rep").write_bytes(report)
        run("import", "plain.ncu-rep", "-o", kind, cwd=folder)
    return path


def run(*words: str, cwd: Path, may_fail: bool = False) -> bytes:
    done = gpadvisor(*words, cwd=cwd)
    assert done.code == 0 or (may_fail and done.code == 3), done.complained
    return (done.said + done.complained).encode()


def everything(place: Path) -> bytes:
    """All bytes of a file or below a folder, with what archives and their tables hold."""
    if place.is_dir():
        return b"".join(str(one).encode() + everything(one) for one in place.rglob("*") if one.is_file())
    data = place.read_bytes()
    if zipfile.is_zipfile(place):
        with zipfile.ZipFile(place) as archive:
            data += repr(archive.infolist()).encode() + archive.comment
            data += b"".join(archive.read(name) for name in archive.namelist())
        profile = load_profile(place)
        data += repr(profile).encode() + repr([vars(type(one)) and one for one in profile.kernels]).encode()
    return data


@pytest.mark.parametrize("kind", INPUTS)
def test_nothing_of_an_input_is_left(tmp_path: Path, kind: str) -> None:
    source = made(kind, tmp_path / "in")
    assert any(secret in everything(source) for secret in SECRETS) or kind.endswith("z")
    place = tmp_path / "out"
    place.mkdir()
    run("import", str(source), "--redact", "-o", "red.gpadvisor", cwd=place)
    left = everything(place / "red.gpadvisor")
    assert not [secret for secret in SECRETS if secret in left]
    (one,) = load_profile(place / "red.gpadvisor").kernels
    assert one.total_samples == 50


def test_no_output_has_it_back(tmp_path: Path) -> None:
    source = made("run.ncu-rep", tmp_path / "in")
    place = tmp_path / "out"
    place.mkdir()
    run("import", str(source), "--redact", "-o", "red.gpadvisor", cwd=place)
    for command, *rest in OUTPUTS:
        # Code made by hand has no listing, which tree and blame say in place of an answer.
        said = run(command, "red.gpadvisor", *rest, cwd=place, may_fail=command != "advise")
        assert said or "-o" in rest, command
        assert not [secret for secret in SECRETS if secret in said], command
    written = everything(place)
    assert (place / "page.html").exists()
    assert not [secret for secret in SECRETS if secret in written]
