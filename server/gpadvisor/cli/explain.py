# SPDX-License-Identifier: Apache-2.0
"""``gpadvisor explain GPA102|long_scoreboard``: the page of a rule or of a stall reason."""

from __future__ import annotations

import argparse
import sys

_DESCRIPTION = """\
Print the page of a rule (what it finds, why warps stall, what to change, when the advice is wrong), or
of a stall reason (what the hardware waits for, what helps, what it is mistaken for, which rules answer it).

  gpadvisor explain GPA106
  gpadvisor explain strength-reduction
  gpadvisor explain long_scoreboard
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "explain",
        help="the page of a rule or a stall reason",
        description=_DESCRIPTION,
    )
    parser.add_argument(
        "name",
        metavar="NAME",
        help="a rule such as GPA102 or strength-reduction, or a stall reason such as long_scoreboard",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the page."""
    from gpadvisor.cli.options import output_width, write_output
    from gpadvisor.pipeline.stall_pages import explain

    page = explain(arguments.name)
    if sys.stdout.isatty():
        page = _fitted(page, output_width())
    write_output(page, paged=not arguments.no_pager)
    return 0


def _fitted(page: str, width: int) -> str:
    """A page with paragraphs and items no wider than the terminal; code, tables and headings as they are."""
    from gpadvisor.report.words import wrap

    lines: list[str] = []
    paragraph: list[str] = []

    def finish() -> None:
        if paragraph:
            item = paragraph[0].startswith("- ")
            text = " ".join(paragraph)
            lines.extend(wrap(text[2:], width, "  ", "- ") if item else wrap(text, width))
            paragraph.clear()

    is_code = False
    for line in page.splitlines():
        is_fence = line.startswith("```")
        if is_fence or is_code or not line or line[0] in "#|":
            finish()
            lines.append(line)
            is_code ^= is_fence
            continue
        if line.startswith("- "):
            finish()
        paragraph.append(line.strip())
    finish()
    return "\n".join(lines) + "\n"
