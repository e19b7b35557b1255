# SPDX-License-Identifier: Apache-2.0
"""The base of the package's enums: members that are quick to look up."""

from __future__ import annotations

from enum import Enum


class Kind(Enum):
    """An enum whose members hash by identity.

    Enum hashes the name in Python code, at every look-up in a set or a dictionary. A member exists once, so
    its identity says the same.
    """

    __hash__ = object.__hash__
