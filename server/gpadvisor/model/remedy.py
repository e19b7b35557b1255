# SPDX-License-Identifier: Apache-2.0
"""Changes of the source that a quick fix or a name from the source goes with, beside the words for them."""

from __future__ import annotations

from gpadvisor.model.kind import Kind


class Remedy(Kind):
    """What the words of a suggestion ask for."""

    IN_FLOAT = "in float"  # compute in single precision what is computed in doubles
    RESTRICT = "restrict"  # say that pointers do not overlap
    KEEP_ELEMENT = "keep element"  # an element in a variable, stored behind the loop
    BOTH_SIDES = "both sides"  # of a condition are evaluated, so that what they read is loaded at once
    GRID_CONSTANT = "grid constant"  # a parameter that is read where it is passed, not copied
    SEVERAL_RESULTS = "several results"  # of a thread, so that it uses what it has loaded for all of them
    SHARED_ROWS = "shared rows"  # a warp for each row that a thread goes along now
    SHARED_PASSES = "shared passes"  # more threads for a loop that one thread does now
    NO_BARRIER = "no barrier"  # barriers that the suggestion names can go
    LOADS_FIRST = "loads first"  # of several passes of a loop, before the first value is used
