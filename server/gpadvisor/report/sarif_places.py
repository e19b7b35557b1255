# SPDX-License-Identifier: Apache-2.0
"""Places in SARIF: artifact addresses from the paths of any machine, regions and logical locations."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar, Final
from urllib.parse import quote

from gpadvisor.model.ids import Pc, SourceLocation
from gpadvisor.report.page import Page

_DRIVE: Final = re.compile(r"^[A-Za-z]:[\\/]")
_SAFE: Final = "/~!$&'()*+,;=@"


@dataclass(frozen=True, slots=True, kw_only=True)
class SarifPlaces:
    """Turns source locations into SARIF objects."""

    BASE: ClassVar[str] = "%SRCROOT%"

    page: Page
    root: str | None  # absolute folder that addresses are relative to
    fallback: str  # the analysed file, for what has no source line

    def artifact(self, path: str) -> dict[str, Any]:
        """The address of a file under the name it has on this machine."""
        path = self.page.local.get(path, path)
        path = _below(path, self.root) if self.root else path
        absolute = _absolute_uri(path)
        if absolute is not None:
            return {"uri": absolute}
        relative = path.replace("\\", "/") if "/" not in path else path
        return {"uri": quote(relative.removeprefix("./"), safe=_SAFE), "uriBaseId": self.BASE}

    def location(
        self, location: SourceLocation | None, *, function: str | None = None, pc: Pc | None = None
    ) -> dict[str, Any]:
        """A place; without a line the analysed file itself, as services refuse results without a file."""
        physical: dict[str, Any] = {
            "artifactLocation": self.artifact(self.fallback if location is None else location.file)
        }
        if location is not None and location.line > 0:
            region: dict[str, Any] = {"startLine": location.line}
            line = self.page.line(location)
            if line is not None:
                region["snippet"] = {"text": line}
            physical["region"] = region
        found: dict[str, Any] = {"physicalLocation": physical}
        if function:
            found["logicalLocations"] = [{"fullyQualifiedName": function, "kind": "function"}]
        if pc is not None:
            found["properties"] = {"pc": int(pc)}
        return found


def _below(path: str, root: str) -> str:
    """The path relative to the root where it lies below it."""
    windows = _DRIVE.match(root) is not None
    plain = path.replace("\\", "/") if windows else path
    prefix = (root.replace("\\", "/") if windows else root).rstrip("/") + "/"
    inside = plain.lower().startswith(prefix.lower()) if windows else plain.startswith(prefix)
    return plain[len(prefix) :] if inside and len(plain) > len(prefix) else path


def _absolute_uri(path: str) -> str | None:
    if _DRIVE.match(path):
        return "file:///" + path[:2] + quote(path[2:].replace("\\", "/"), safe=_SAFE)
    if path.startswith("\\\\"):
        return "file:" + quote(path.replace("\\", "/"), safe=_SAFE)
    return "file://" + quote(path, safe=_SAFE) if path.startswith("/") else None
