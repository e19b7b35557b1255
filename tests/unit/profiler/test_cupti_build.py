# SPDX-License-Identifier: Apache-2.0
"""Finding CUPTI and building the injection library: what is said where something is missing."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.injection import found_cupti

from gpadvisor.errors import ToolFailedError, ToolNotFoundError
from gpadvisor.profiler.cupti import Cupti, build_library, discovery, find_cupti
from gpadvisor.profiler.cupti import build as building
from gpadvisor.store.collection import layout


def _toolkit(folder: Path, version: int, *, extras: bool = False) -> Path:
    """A toolkit's folders, with what is looked for."""
    headers = folder / "extras" / "CUPTI" / "include" if extras else folder / "include"
    libraries = folder / "extras" / "CUPTI" / "lib64" if extras else folder / "lib64"
    for place in (folder / "bin", folder / "include", headers, libraries):
        place.mkdir(parents=True, exist_ok=True)
    (folder / "include" / "cuda.h").write_text("")
    (headers / "cupti_pcsampling.h").write_text("")
    (headers / "cupti_version.h").write_text(f"#define CUPTI_API_VERSION {version}\n")
    (libraries / f"libcupti.so.{version // 10_000 if version >= 130_000 else 12}").write_text("")
    return folder / "bin"


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No CUPTI but what a test puts under the folder returned."""
    monkeypatch.setattr(discovery, "package_roots", lambda _: ())
    monkeypatch.setattr(
        discovery, "toolkit_folders", lambda: sorted(tmp_path.glob("cuda*/bin"), reverse=True)
    )
    return tmp_path


def test_the_copy_of_the_drivers_release_is_taken(only: Path) -> None:
    _toolkit(only / "cuda-13.0", 130_001)
    _toolkit(only / "cuda-12.6", 24, extras=True)
    assert find_cupti(driver=13_010).major == 13
    old = find_cupti(driver=12_060)
    assert (old.major, old.api_version, old.origin) == (12, 24, "toolkit")
    assert old.library == only / "cuda-12.6" / "extras" / "CUPTI" / "lib64" / "libcupti.so.12"
    assert len(old.includes) == 2
    assert find_cupti(driver=0).major == 13  # without a driver: the first that is found
    _toolkit(only / "cuda-13.5", 130_500)
    assert find_cupti(driver=13_050).api_version == 130_500
    assert find_cupti(driver=13_010).api_version == 130_001  # not newer than the driver


def test_a_driver_older_than_every_copy_is_told_what_to_install(only: Path) -> None:
    _toolkit(only / "cuda-13.0", 130_001)
    with pytest.raises(
        ToolNotFoundError,
        match=r"up to 12\.4.*CUDA 13 only; pip install nvidia-cuda-cupti-cu12 nvidia-cuda-runtime-cu12",
    ):
        find_cupti(driver=12_040)


def test_no_headers_are_told_with_the_extra_that_has_them(only: Path) -> None:
    _toolkit(only / "cuda-11.8", 17)
    with pytest.raises(
        ToolNotFoundError, match="pip install nvidia-cuda-cupti nvidia-cuda-runtime brings them"
    ):
        find_cupti(driver=13_000)


def test_the_wheels_of_cuda_12_have_a_folder_each(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for package, name, text in (
        ("cuda_cupti", "cupti_pcsampling.h", ""),
        ("cuda_cupti", "cupti_version.h", "# define CUPTI_API_VERSION  26"),
        ("cuda_runtime", "cuda.h", ""),
    ):
        (tmp_path / package / "include").mkdir(parents=True, exist_ok=True)
        (tmp_path / package / "include" / name).write_text(text)
    (tmp_path / "cuda_cupti" / "lib").mkdir()
    (tmp_path / "cuda_cupti" / "lib" / "libcupti.so.12").write_text("")
    monkeypatch.setattr(discovery, "package_roots", lambda _: (tmp_path,))
    monkeypatch.setattr(discovery, "toolkit_folders", lambda: ())
    found = find_cupti(driver=12_090)
    assert (found.major, found.origin) == (12, "wheel")
    assert found.library == tmp_path / "cuda_cupti" / "lib" / "libcupti.so.12"


CUPTI = Cupti(includes=(Path("/nowhere"),), library=None, api_version=130_000, origin="wheel")


def test_no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(ToolNotFoundError, match="none of cc, gcc and clang is on PATH; install one"):
        build_library(CUPTI, tmp_path)
    monkeypatch.setenv("CC", "mycc -m64")
    with pytest.raises(ToolNotFoundError, match="CC names 'mycc -m64'"):
        build_library(CUPTI, tmp_path)
    monkeypatch.setenv("CC", "un'balanced")
    with pytest.raises(ToolNotFoundError, match="CC names"):
        build_library(CUPTI, tmp_path)


def test_another_system_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(building.sys, "platform", "win32")
    with pytest.raises(ToolNotFoundError, match="works on Linux, not on win32"):
        build_library(CUPTI, tmp_path)


def test_a_compiler_that_refuses(tmp_path: Path) -> None:
    found_cupti()
    with pytest.raises(ToolFailedError, match=r"could not be built: .*cupti_\w+\.h.*--collector ncu"):
        build_library(CUPTI, tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    cupti = found_cupti()
    (tmp_path / "file").write_text("")
    with pytest.raises(ToolFailedError, match="GPADVISOR_CACHE"):
        build_library(cupti, tmp_path / "file" / "cache")


def test_options_of_the_compiler_name_another_library(tmp_path: Path) -> None:
    cupti = found_cupti()
    first = build_library(cupti, tmp_path)
    assert first.built_now
    assert not build_library(cupti, tmp_path).built_now
    other = build_library(cupti, tmp_path, flags=("-DNDEBUG",))
    assert other.built_now
    assert other.path != first.path


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_every_warning_is_an_error(compiler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against every copy of CUPTI's headers that is here, of CUDA 12 as of CUDA 13."""
    found_cupti()
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler} on PATH")
    monkeypatch.setenv("CC", compiler)
    strict = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wstrict-prototypes", "-Wvla", "-Werror")
    for number, cupti in enumerate(discovery._candidates()):
        assert build_library(cupti, tmp_path / str(number), flags=strict).built_now


def test_the_two_packages_that_are_named_are_enough(tmp_path: Path) -> None:
    """A header of theirs wants crt/, which only the package of nvcc has."""
    cupti = found_cupti()
    alone = tmp_path / "include"
    alone.mkdir()
    for folder in reversed(cupti.includes):
        for entry in folder.iterdir():
            if entry.name != "crt":
                (alone / entry.name).unlink(missing_ok=True)
                (alone / entry.name).symlink_to(entry)
    found = Cupti(includes=(alone,), library=None, api_version=cupti.api_version, origin=cupti.origin)
    assert build_library(found, tmp_path / "cache", flags=("-Werror",)).built_now


def test_no_header_is_vendored() -> None:
    for name, data in building._sources().items():
        assert data.startswith(b"/* SPDX-License-Identifier: Apache-2.0 */"), name
        assert b"NVIDIA Corporation" not in data, name


_SIZES = {
    "gpa_record_header": layout.RECORD_HEADER.size,
    "gpa_process": layout.PROCESS.size,
    "gpa_note": layout.NOTE.size,
    "gpa_device": layout.DEVICE.size,
    "gpa_context": layout.CONTEXT.size,
    "gpa_reasons": layout.REASONS.size,
    "gpa_copy": layout.COPY.size,
    "gpa_caller": layout.CALLER.itemsize,
    "gpa_call": layout.CALL.itemsize,
    "gpa_module": layout.MODULE.size,
    "gpa_launch": layout.LAUNCH.size,
    "gpa_failed": layout.FAILED.size,
    "gpa_kernel": layout.KERNEL.itemsize,
    "gpa_path": layout.PATH.size,
    "gpa_frame": layout.FRAME.size,
    "gpa_symbol": layout.SYMBOL.size,
    "gpa_samples": layout.SAMPLES.size,
    "gpa_sample": layout.SAMPLE.itemsize,
    "gpa_segment_header": layout.SEGMENT_HEADER.size,
}


def test_the_reader_and_the_writer_have_one_layout(tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("no gcc on PATH to ask for the sizes")
    native = Path(building.__file__).parent / "native"
    checks = "".join(
        f'_Static_assert(sizeof(struct {name}) == {size}, "{name}");\n' for name, size in _SIZES.items()
    )
    numbers = {f"GPA_{kind.name}": int(kind) for kind in layout.RecordKind}
    numbers |= {f"GPA_STAGE_{stage.name}": int(stage) for stage in layout.Stage}
    numbers |= {"GPA_UNIT_BYTES": layout.UNIT_BYTES, "GPA_MARK": layout.MARK, "GPA_VERSION": layout.VERSION}
    checks += "".join(f'_Static_assert({name} == {value}, "{name}");\n' for name, value in numbers.items())
    (tmp_path / "sizes.c").write_text(f'#include "format.h"\n{checks}')
    done = subprocess.run(
        ["gcc", "-std=c11", "-c", f"-I{native}", str(tmp_path / "sizes.c"), "-o", str(tmp_path / "sizes.o")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
