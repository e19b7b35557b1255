# SPDX-License-Identifier: Apache-2.0
"""Places in SARIF: artifact addresses from the paths of any machine, regions and logical locations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final
from urllib.parse import quote

from gpadvisor.model.ids import Pc, SourceLocation
from gpadvisor.report.placement import RepositoryPlaces, is_absolute

_SAFE: Final = "/~!$&'()*+,;=@"


@dataclass(frozen=True, slots=True, kw_only=True)
class SarifPlaces:
    """Turns source locations into SARIF objects."""

    BASE: ClassVar[str] = "%SRCROOT%"

    placement: RepositoryPlaces

    def artifact(self, path: str) -> dict[str, Any]:
        """The address of a file under the name it has on this machine."""
        inside = self.placement.below(path)
        path = inside or self.placement.page.local.get(path, path)
        if inside is None and is_absolute(path):
            return {"uri": _absolute_uri(path)}
        relative = path.replace("\\", "/") if "/" not in path else path
        return {"uri": quote(relative.removeprefix("./"), safe=_SAFE), "uriBaseId": self.BASE}

    def location(
        self, location: SourceLocation | None, *, function: str | None = None, pc: Pc | None = None
    ) -> dict[str, Any]:
        """A place; the function alone where no line is known."""
        result: dict[str, Any] = {}
        if location is not None:
            physical: dict[str, Any] = {"artifactLocation": self.artifact(location.file)}
            line = self.placement.line(location)
            if line is not None and line > 0:
                region: dict[str, Any] = {"startLine": line}
                text = self.placement.page.line(location)
                if text is not None:
                    region["snippet"] = {"text": text}
                physical["region"] = region
            result["physicalLocation"] = physical
        if function:
            result["logicalLocations"] = [{"fullyQualifiedName": function, "kind": "function"}]
        if pc is not None:
            result["properties"] = {"pc": int(pc)}
        return result


def _absolute_uri(path: str) -> str:
    if path.startswith("\\\\"):
        return "file:" + quote(path.replace("\\", "/"), safe=_SAFE)
    if path.startswith("/"):
        return "file://" + quote(path, safe=_SAFE)
    return "file:///" + path[:2] + quote(path[2:].replace("\\", "/"), safe=_SAFE)
