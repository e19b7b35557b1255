# SPDX-License-Identifier: Apache-2.0
"""What is installed: hashes (`lock`), bills of materials (`sbom package|extension`), licences, advisories."""

from __future__ import annotations

import json
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).resolve().parent
REQUIREMENTS = HERE / "requirements.txt"
CONSTRAINTS = HERE.parent / "constraints.txt"
_HEADS = {
    CONSTRAINTS: """# SPDX-License-Identifier: Apache-2.0
# The versions everything is tested with, and the hashes of their files: the Makefile installs no others.
# To take another version, change it here and run `make lock`.
""",
    REQUIREMENTS: """# What the extension installs of constraints.txt, by hash: made by `make lock`.
""",
}
_ADVISORIES = "https://api.osv.dev/v1/querybatch"
_FREE = re.compile(
    r"\b(MIT|BSD|Apache|ISC|PSF|Python Software Foundation|Zlib|0BSD|CC0|MPL-2\.0|Mozilla|LLVM|Unlicense)\b",
    re.IGNORECASE,
)
# Not free, and not part of what is distributed: each user's pip takes them from NVIDIA.
_NVIDIA = re.compile(r"nvidia-|cuda-")


@dataclass(frozen=True, slots=True)
class Package:
    """One line of the requirements."""

    name: str
    version: str
    hashes: tuple[str, ...]


def packages(text: str) -> list[Package]:
    """The pinned packages of a requirements file."""
    found = []
    for entry in text.replace("\\\n", " ").splitlines():
        words = entry.split(";")[0].split() if not entry.startswith("#") else []
        if words and "==" in words[0]:
            name, _, version = words[0].partition("==")
            found.append(Package(name, version, tuple(re.findall(r"--hash=sha256:([0-9a-f]{64})", entry))))
    return found


def shipped() -> list[Package]:
    """What gpadvisor needs with all of its extras, of the versions that it is tested with.

    The requirements of packages that are not installed, as they are for another platform, are not known.
    """
    pinned = {_plain(one.name): one for one in packages(CONSTRAINTS.read_text(encoding="utf-8"))}
    own = metadata.metadata("gpadvisor").get_all("Provides-Extra") or ()
    waiting = [("gpadvisor", frozenset(own))]
    seen = set(waiting)
    while waiting:
        name, extras = waiting.pop()
        for wanted in _needs(name, extras):
            if wanted[0] in pinned and wanted not in seen:
                seen.add(wanted)
                waiting.append(wanted)
    names = {name for name, _ in seen} - {"gpadvisor"}
    return [one for name, one in sorted(pinned.items()) if name in names]


def _needs(name: str, extras: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """The packages, with their extras, that one needs with some of its own."""
    try:
        lines = metadata.requires(name) or ()
    except metadata.PackageNotFoundError:
        return
    for line in lines:
        extra = re.search(r"extra == ['\"]([^'\"]+)", line)
        found = re.match(r"([\w.-]+)(?:\[([^\]]*)\])?", line)
        if found is not None and (extra is None or extra[1] in extras):
            yield _plain(found[1]), frozenset(re.findall(r"[\w.-]+", found[2] or ""))


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def licence(name: str) -> str:
    """What an installed package says about its licence."""
    found = metadata.metadata(name)
    said = [found.get("License-Expression"), *(found.get_all("Classifier") or ()), found.get("License")]
    return " | ".join(part[:200] for part in said if part and ("Licen" in part or "::" not in part))


def unlicensed() -> list[str]:
    """Installed packages of what is needed whose licence is not on the list."""
    wrong = []
    for package in shipped():
        try:
            said = licence(package.name)
        except metadata.PackageNotFoundError:  # of another platform
            continue
        if not _FREE.search(said) and not _NVIDIA.match(package.name):
            wrong.append(f"{package.name}: {said or 'says nothing'}")
    return wrong


def sbom(listed: Sequence[Package]) -> str:
    """A bill of materials as CycloneDX 1.5."""
    components = [
        {
            "type": "library",
            "name": one.name,
            "version": one.version,
            "purl": f"pkg:pypi/{one.name}@{one.version}",
            "hashes": [{"alg": "SHA-256", "content": value} for value in one.hashes],
        }
        for one in listed
    ]
    document = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "components": components}
    return json.dumps(document, indent=1) + "\n"


def advisories() -> int:
    """Known advisories of everything that constraints.txt pins; 1 where there are any."""
    pinned = packages(CONSTRAINTS.read_text(encoding="utf-8"))
    asked = {
        "queries": [
            {"package": {"ecosystem": "PyPI", "name": one.name}, "version": one.version} for one in pinned
        ]
    }
    request = urllib.request.Request(
        _ADVISORIES, json.dumps(asked).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            results = json.load(answer)["results"]
    except (OSError, ValueError, KeyError, urllib.error.URLError) as error:
        sys.stdout.write(f"advisories were not looked up: {_ADVISORIES} does not answer ({error})\n")
        return 0
    found = [
        f"{one.name} {one.version}: {', '.join(entry['id'] for entry in result['vulns'])}"
        for one, result in zip(pinned, results, strict=True)
        if result.get("vulns")
    ]
    sys.stdout.write("\n".join(found) + "\n" if found else f"no advisory on {len(pinned)} packages\n")
    return 1 if found else 0


def main(words: list[str]) -> int:
    """Run one of the commands."""
    match words:
        case ["sbom", "extension"]:
            sys.stdout.write(sbom(packages(REQUIREMENTS.read_text(encoding="utf-8"))))
        case ["sbom", "package"]:
            sys.stdout.write(sbom(shipped()))
        case ["lock", constraints, requirements]:
            for (path, head), made in zip(_HEADS.items(), (constraints, requirements), strict=True):
                path.write_text(head + Path(made).read_text(encoding="utf-8"), encoding="utf-8")
        case ["licences"]:
            wrong = unlicensed()
            sys.stdout.write("".join(f"{line}\n" for line in wrong))
            return 1 if wrong else 0
        case ["advisories"]:
            return advisories()
        case _:
            sys.stderr.write(f"{__doc__}\n")
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
