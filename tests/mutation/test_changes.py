# SPDX-License-Identifier: Apache-2.0
"""What `make mutate` changes, one at a time, and what it leaves as it is."""

from __future__ import annotations

import ast

import pytest
from tests.mutation.__main__ import TESTS, _sites, mutants


@pytest.mark.parametrize(
    ("code", "changed"),
    [
        ("a < b <= c", ["a <= b <= c", "a < b < c"]),
        ("a and (not b)", ["a or not b", "a and (not not b)"]),
        ("x = 2 * y", ["x = 2 / y", "x = 3 * y"]),
        ("LIMIT = 0.4", ["LIMIT = 0.6000000000000001"]),
        ("x += min(y)", ["x -= min(y)", "x += max(y)"]),
        ("f(True)", ["None", "f(False)"]),
        ("x = a if b else c", ["x = a if not b else c"]),
        ("while a:\n    break", ["while not a:\n    break"]),
        ("@cache(size=4)\ndef f(a: Literal[1]) -> Literal[2]:\n    'text'", []),
        ("zip(a, b, strict=True)", ["None"]),
        ("page = __doc__ or ''", []),
    ],
)
def test_one_change_at_a_time(code: str, changed: list[str]) -> None:
    found = []
    for at in range(len(_sites(ast.parse(code)))):
        tree = ast.parse(code)
        node, fields = _sites(tree)[at]
        node.__dict__.update(fields)
        found.append(ast.unparse(tree))
    assert found == changed


@pytest.mark.parametrize("package", TESTS)
def test_every_package_has_changes_that_are_python(package: str) -> None:
    first = next(mutants(package))
    said, tree = first.changed()
    assert said
    compile(tree, str(first.file), "exec")
