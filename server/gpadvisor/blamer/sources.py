# SPDX-License-Identifier: Apache-2.0
"""What a way of blaming returns: for each stall reason of a use, the edges its samples are shared among."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpadvisor.blamer.graph import Edge
from gpadvisor.model.blame import DependencyClass, Role


@dataclass(frozen=True, slots=True)
class Source:
    """One edge that gets a share."""

    edge: Edge
    dependency_class: DependencyClass
    distance: float | None  # in instructions, for Eq. 1; None: no path bound
    weight: float | None = None  # in place of the def's issues, where something better is known


@dataclass(frozen=True, slots=True)
class Found:
    """The answer for one stall reason; without sources the samples have the role given."""

    sources: tuple[Source, ...]
    role: Role = Role.UNATTRIBUTED
    dependency_class: DependencyClass = DependencyClass.NONE


UNATTRIBUTED = Found(())


@dataclass(frozen=True, slots=True)
class UseResult:
    """All edges into one use, and the answer for each of its dependency stall reasons."""

    edges: tuple[Edge, ...]
    found: Mapping[int, Found]  # by index of the reason
