# SPDX-License-Identifier: Apache-2.0
"""Redaction removes paths, hosts and command lines and keeps every measurement."""

from __future__ import annotations

import io
import shutil
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cubin_parts import Part, Sym, code, elf, unit
from tests.kernels import compile_text
from tests.ncu_writer import FrameSpec, LaunchSpec, write_report
from tests.profile_values import assert_same_profile
from tests.tiny_cubin import tiny_cubin

from gpadvisor.cubin import read_cubin, section_lines
from gpadvisor.errors import ProfileError
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.model.profile import LaunchPath, Profile, RuleResult
from gpadvisor.store.load import load_bytes, load_profile
from gpadvisor.store.snapshot import snapshot_bytes, write_snapshot
from gpadvisor.store.snapshot.line_paths import Placeholders
from gpadvisor.store.snapshot.redaction import redacted
from gpadvisor.toolchain.discovery import find_tools

SECRETS = (b"secretuser", b"secrethost", b"secretproject", b"--secretflag", b"secret text")
SPEC = LaunchSpec(
    kernel="k",
    cubin=tiny_cubin({"k": []}),
    samples={("k", 16, "wait"): (5, 4)},
    sources={
        "/home/secretuser/secretproject/a.cu": "// secret text",
        "/home/secretuser/lib/a.cu": "// secret text",
    },
    call_stack=[
        FrameSpec(module="/home/secretuser/app", address=16, function="main", file="/home/secretuser/m.cc")
    ],
)


needs_nvcc = pytest.mark.skipif(
    not find_tools("nvcc") or not shutil.which("gcc"), reason="toolkit: neither nvcc with a host compiler"
)


def unpacked(data: bytes, profile: Profile) -> bytes:
    """Everything in a snapshot: members as they are, and the values that compressed tables hold."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return b"".join(archive.read(name) for name in archive.namelist()) + repr(profile).encode()


def test_nothing_secret_is_left_in_the_bytes(tmp_path: Path) -> None:
    report = write_report(
        [SPEC],
        host="secrethost",
        command="ncu /home/secretuser/app --secretflag",
        executable="/home/secretuser/app",
    )
    path = tmp_path / "run.gpadvisor"
    whole = load_bytes(report)
    whole = replace(
        whole,
        launch_paths=(
            LaunchPath(
                kernel=whole.kernels[0].launch.kernel,
                binary=whole.kernels[0].binary,
                launches=2,
                duration_ns=None,
                frames=whole.kernels[0].call_stack,
            ),
        ),
    )
    write_snapshot(whole, path, redact=True)
    profile = load_profile(path)
    assert profile.launch_paths[0].frames == profile.kernels[0].call_stack
    assert profile.launch_paths[0].binary == profile.kernels[0].binary
    assert not [secret for secret in SECRETS if secret in unpacked(path.read_bytes(), profile)]
    plain = snapshot_bytes(load_bytes(report))
    assert all(secret in unpacked(plain, load_bytes(plain)) for secret in SECRETS)
    assert (profile.command, profile.host) == ("redacted-command", "redacted-host")
    assert profile.kernels[0].total_samples == 5
    assert profile.kernels[0].call_stack[0].function == "main"


def test_files_of_one_name_stay_apart_and_keep_their_hash() -> None:
    before = load_bytes(write_report([SPEC]))
    after = redacted(before)
    assert len(after.sources) == 2
    assert all(path.endswith("/a.cu") for path in after.sources)
    assert {source.sha256 for source in after.sources.values()} == {
        source.sha256 for source in before.sources.values()
    }
    assert all(source.text is None for source in after.sources.values())


def test_redaction_is_stable() -> None:
    profile = load_bytes(write_report([SPEC]))
    assert_same_profile(redacted(profile), redacted(profile))


@pytest.mark.parametrize(
    ("path", "shape"),
    [
        ("/home/me/a.cu", "/????/??/a.cu"),
        (r"C:\Users\me\a.cu", r"??\?????\??\a.cu"),
        ("a.cu", "a.cu"),
        ("", ""),
    ],
)
def test_placeholders_keep_length_and_last_part(path: str, shape: str) -> None:
    found = Placeholders().text(path)
    assert len(found) == len(path)
    assert all(mark in ("?", letter) for mark, letter in zip(shape, found, strict=True))
    assert "me" not in found.replace("\\", "/").split("/")[:-1]


def test_one_name_has_one_placeholder() -> None:
    names = Placeholders()
    assert names.text("/home/me/a.cu").rsplit("/", 1)[0] == names.text("/home/me/b.cu").rsplit("/", 1)[0]
    assert names.text("/home/he/a.cu") != names.text("/home/me/a.cu")


@pytest.mark.toolkit
def test_line_tables_keep_their_lines() -> None:
    text = "__global__ void k(float *p) {\n  float x = p[threadIdx.x];\n  p[threadIdx.x] = x * x + 1;\n}\n"
    cubin = compile_text(text, "/home/secretuser/secretproject/k.cu")
    assert b"secretproject" in cubin
    scrubbed = Placeholders().cubin(cubin)
    assert len(scrubbed) == len(cubin)
    assert b"secret" not in scrubbed
    before, after = read_cubin(cubin), read_cubin(scrubbed)
    for old, new in zip(before.sections, after.sections, strict=True):
        assert old.code == new.code
        old_lines, new_lines = section_lines(before, old), section_lines(after, new)
        assert [line and line.location.line for line in old_lines] == [
            line and line.location.line for line in new_lines
        ]
        assert any(new_lines)


@pytest.mark.parametrize("name", [".nv.merc.debug_line", ".nv.tomorrow", ".nv.merc.debug_str"])
def test_no_section_is_passed_over(name: str) -> None:
    """As Blackwell's second line table was."""
    table, _ = unit(b"", directories=("/home/secretuser/secretproject",))
    content = table if name.endswith("line") else b"\0/home/secretuser/secretproject/k.cu\0"
    cubin = elf([Part(".text.k", code(8)), Part(name, content)], [Sym("k", ".text.k", 0, 128)])
    scrubbed = Placeholders().cubin(cubin)
    assert len(scrubbed) == len(cubin)
    assert b"secret" not in scrubbed
    assert b"secret" not in Placeholders().cubin(elf([Part(".text.k", code(8)), Part(name, content)]))


@pytest.mark.toolkit
@needs_nvcc
@pytest.mark.parametrize("flags", [("-lineinfo",), ("-G",), ("-lineinfo", "-arch=sm_100")])
def test_what_the_code_itself_says_of_its_folders_goes_too(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """Relative ones, in assertions and constants, and of any letters; in Blackwell's second copy as well."""
    place = tmp_path / "sécret user" / "secret (x)"
    (place / "secret sub").mkdir(parents=True)
    (place / "secret sub" / "h.cuh").write_text(
        "#include <cassert>\n__device__ float h(float x) { assert(x > 0); return x; }\n"
    )
    (place / "k.cu").write_text(
        '#include "secret sub/h.cuh"\n#include <cstdio>\n__constant__ char here[] = __FILE__;\n'
        '__global__ void k(float *a) { printf("%s %c", __FILE__, here[threadIdx.x]); a[0] = h(a[1]); }\n'
    )
    nvcc = find_tools("nvcc")[0].path
    command = [nvcc, "-cubin", *flags, "secret (x)/k.cu", "-o", tmp_path / "k.cubin"]
    subprocess.run(command, cwd=place.parent, check=True)
    cubin = (tmp_path / "k.cubin").read_bytes()
    assert cubin.count(b"secret (x)") > 2
    assert b"secret sub/h.cuh" in cubin
    before = load_bytes(write_report([replace(SPEC, cubin=cubin, kernel="_Z1kPf", samples={})]))
    (after,) = redacted(before).binaries.values()
    assert b"cret" not in after.replace("sécret".encode(), b"secret")
    assert len(after) == len(cubin)
    assert b"k.cu" in after


def test_sentences_keep_their_words_and_lose_their_folders() -> None:
    """Of problems, rules, and metrics; those of hosts and commands, too."""
    profile = load_bytes(write_report([SPEC], host="secrethost", command="app --secretflag"))
    said = "L1/TEX on secrethost: no code in /home/secretuser/secretproject/k.so, "
    said += "see https://docs.nvidia.com/a/b; run app --secretflag in "
    said += r"C:\Users\secretuser\x or /srv/secretproject/build"
    rule = RuleResult(
        identifier="r", name="r", section=None, kind="ok", message=said, estimated_speedup=None, title=said
    )
    (kernel,) = profile.kernels
    problem = Problem(ProblemCode.NO_BINARY, said)
    kernel = replace(kernel, rules=(rule,), problems=(problem,), metrics={**kernel.metrics, "m": said})
    done = redacted(replace(profile, kernels=(kernel,), problems=(problem,)))
    told = {done.problems[0].message, done.kernels[0].problems[0].message, done.kernels[0].metrics["m"]}
    told |= {done.kernels[0].rules[0].message, done.kernels[0].rules[0].title}
    (words,) = told
    assert "secret" not in str(words)
    assert str(words).startswith("L1/TEX on redacted-host: no code in /")
    assert "/k.so, see https://docs.nvidia.com/a/b; run redacted-command in " in str(words)


def test_a_snapshot_in_which_a_folder_would_stay_is_not_written(tmp_path: Path) -> None:
    """In a text that nobody thought of."""
    profile = load_bytes(write_report([SPEC]))
    odd = replace(profile, collector_version="1 of /home/secretuser/secretproject/k.so")
    with pytest.raises(ProfileError, match="cannot be redacted"):
        write_snapshot(odd, tmp_path / "x.gpadvisor", redact=True)
    assert not list(tmp_path.iterdir())
