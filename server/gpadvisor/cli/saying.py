# SPDX-License-Identifier: Apache-2.0
"""The one place where sentences go to standard error: names and paths in them are anybody's."""

from __future__ import annotations

import argparse
import sys
from typing import Final, NoReturn

_LONGEST: Final = 4096


def say(sentence: str) -> None:
    """One line, without anything that moves a cursor, changes a colour or begins another line."""
    from gpadvisor.report.words import clean

    sys.stderr.write(f"gpadvisor: {clean(sentence, _LONGEST)}\n")


class Parser(argparse.ArgumentParser):
    """Its errors quote the command line."""

    def error(self, message: str) -> NoReturn:
        """End with the usage and a clean sentence."""
        from gpadvisor.report.words import clean

        super().error(clean(message, _LONGEST))
