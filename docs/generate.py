# SPDX-License-Identifier: Apache-2.0
"""Writes what has its source in the code: the rules' pages, and the README's transcript where the report is.

``make docs`` runs it; tests prove the result current.
"""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

from gpadvisor.estimators.constants import table
from gpadvisor.estimators.context import Optimizer
from gpadvisor.estimators.run_facts import RunRule
from gpadvisor.model.stalls import KNOWN_REASONS
from gpadvisor.pipeline.rule_pages import all_rules, kind_of, rule_page
from gpadvisor.pipeline.stall_pages import stall_pages

FOLDER = Path(__file__).resolve().parent
README = FOLDER.parent / "README.md"

TRANSCRIPT_REPORT = "rtx3090_gemm_naive.ncu-rep"
_TRANSCRIPT_ARGUMENTS = ("advise", TRANSCRIPT_REPORT)
_TRANSCRIPT = re.compile(r"(?<=<!-- transcript -->\n).*?(?=<!-- end of transcript -->)", re.DOTALL)

_INTRODUCTION = """\
# Rules

One page for each, the same text as `gpadvisor explain CODE`.

| code | rule | category | what it is |
|---|---|---|---|
"""


def pages() -> dict[str, str]:
    """Every generated page by its path under ``docs``."""
    found = {"rules/README.md": _INTRODUCTION + "".join(_row(rule) for rule in all_rules())}
    for rule in all_rules():
        found[f"rules/{rule.code}-{rule.slug}.md"] = rule_page(rule.code)
    found["stalls/README.md"] = _STALLS + "".join(
        f"| [{page.title}]({page.name}.md) | {KNOWN_REASONS[page.name].plain} |\n" for page in stall_pages()
    )
    for page in stall_pages():
        found[f"stalls/{page.name}.md"] = page.markdown("../rules/{code}-{slug}.md")
    found["constants.md"] = _CONSTANTS + "".join(
        f"| `{name}` | {value:g} | {value.ground.value} | {value.reason} |\n"
        for name, value in table().items()
    )
    return found


_STALLS = """\
# Stall reasons

One page for each, the same text as `gpadvisor explain REASON`. The names are those of CUPTI; `explain` takes
those of Nsight Compute's columns and metrics as well.

| reason | what the warp does |
|---|---|
"""
_CONSTANTS = """\
# Constants

Every number that decides what is told, or that an estimate is multiplied by, from
`server/gpadvisor/estimators/constants.py`. No rule and no estimator has another fraction, which a test
checks, as it does that the shares of Table III follow from its speedups. Whole numbers that are part of what
is looked for (a warp, a factor of unrolling) stand beside it. What is known of the hardware is in the machine
models.

| name | value | source | how |
|---|---|---|---|
"""


def _row(rule: Optimizer | RunRule) -> str:
    page = f"[{rule.code}]({rule.code}-{rule.slug}.md)"
    return f"| {page} | {rule.name} | {kind_of(rule)} | {_summary(rule)} |\n"


def _summary(rule: Optimizer | RunRule) -> str:
    """What the first line of the page says between the name and the paper's section."""
    first = inspect.cleandoc(rule.document).partition("\n")[0]
    return first.partition(": ")[2].partition(" (GPA")[0].rstrip(".")


def transcript(reports: Path) -> str:
    """The command and what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "gpadvisor", *_TRANSCRIPT_ARGUMENTS],
        capture_output=True,
        text=True,
        check=True,
        cwd=reports,
        env={**os.environ, "GPADVISOR_CACHE": "", "COLUMNS": "80", "NO_COLOR": "1"},
    )
    return f"```\n$ gpadvisor {' '.join(_TRANSCRIPT_ARGUMENTS)}\n{done.stdout}```\n"


def readme_with(text: str) -> str:
    """The README with another transcript."""
    return _TRANSCRIPT.sub(lambda _: text, README.read_text(encoding="utf-8"))


def main() -> None:
    """Write every page, and remove pages of rules and reasons that are gone."""
    wanted = pages()
    for name in ("rules", "stalls"):
        folder = FOLDER / name
        folder.mkdir(exist_ok=True)
        for path in folder.glob("*.md"):
            if f"{name}/{path.name}" not in wanted:
                path.unlink()
    for name, text in wanted.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    reports = Path(os.environ.get("GPADVISOR_REPORTS", ""))
    if (reports / TRANSCRIPT_REPORT).is_file() and "GPADVISOR_REPORTS" in os.environ:
        README.write_text(readme_with(transcript(reports)), encoding="utf-8")


if __name__ == "__main__":
    main()
