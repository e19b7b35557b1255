# SPDX-License-Identifier: Apache-2.0
"""The output of nvcc and NVRTC as values: of the preprocessor, the device front end, ptxas, nvcc itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from gpadvisor.errors import SourceError
from gpadvisor.model.compiler_message import CompilerMessage

_MESSAGES_MAX: Final = 200
_CONTINUED_MAX: Final = 12
# "k.cu(4): error: ...", "k.cu(4): error #20-D: ...", "k.cu(1): catastrophic error: ..."
_FRONT_END: Final = re.compile(
    r"(?P<file>[^()\n]+)\((?P<line>\d+)\): (?:catastrophic |internal )?error(?: #[\w-]+)?: (?P<message>.+)"
)
# As "k.cu:1:10: fatal error: ...", by gcc or clang.
_PREPROCESSOR: Final = re.compile(
    r"(?P<file>[^:\n]+):(?P<line>\d+):(?:(?P<column>\d+):)? (?:fatal )?error: (?P<message>.+)"
)
_WITHOUT_PLACE: Final = re.compile(
    r"(?:ptxas|nvcc|cicc|cudafe\+\+|nvlink)\s+(?:fatal|error)\s*:\s*(?P<message>.+)"
    r"|ptxas .+, line \d+; (?:fatal|error)\s*: (?P<ptx>.+)"
    r"|(?:nvrtc|cc1plus|g\+\+|gcc): (?:fatal )?error: (?P<other>.+)"
)
_INCLUDED: Final = re.compile(r"(?:In file included|\s+) from (?P<file>[^:\n]+):(?P<line>\d+)[:,]")
_MISSING: Final = re.compile(
    r"(?P<gcc>\S.*): No such file or directory|cannot open source file \"(?P<front_end>[^\"]+)\""
)
_SUMMARY: Final = re.compile(
    r"(?:error|catastrophic error|fatal).* detected (?:in|during)|compilation terminated"
)


class CompileError(SourceError):
    """A source does not compile; ``messages`` are the compiler's."""

    def __init__(self, sentence: str, messages: tuple[CompilerMessage, ...], *, by_nvrtc: bool) -> None:
        super().__init__(sentence)
        self.messages = messages
        self.by_nvrtc = by_nvrtc  # device code alone


def read_messages(
    log: str, *, path_of: Callable[[str], str] = str, line_of: Callable[[str, int], str | None] | None = None
) -> tuple[CompilerMessage, ...]:
    """The errors in a compiler's output, in its order, each once.

    Args:
        log: The output; lines that are no errors are passed over.
        path_of: The absolute path for one in the output.
        line_of: The text of a line of a file (by its absolute path), without which no column of the device
            front end is known: it counts in what the preprocessor has made of the line.
    """
    result: dict[CompilerMessage, None] = {}
    for message in _messages(log.splitlines(), path_of, line_of):
        result.setdefault(message)
        if len(result) >= _MESSAGES_MAX:
            break
    return tuple(result)


def _messages(
    lines: list[str], path_of: Callable[[str], str], line_of: Callable[[str, int], str | None] | None
) -> Iterator[CompilerMessage]:
    included: tuple[str, int] | None = None
    for index, line in enumerate(lines):
        if (chain := _INCLUDED.match(line)) is not None:
            included = path_of(chain["file"]), int(chain["line"])
            continue
        if _SUMMARY.search(line):
            continue
        if (match := _FRONT_END.fullmatch(line)) is not None:
            file, number = path_of(match["file"]), int(match["line"])
            words, quoted, caret = _continued(match["message"], lines[index + 1 :])
            text = None if line_of is None or quoted is None else line_of(file, number)
            yield CompilerMessage(
                message=words,
                file=file,
                line=number,
                column=_column(text, quoted, caret),
                missing_header=_missing(words),
            )
        elif (match := _PREPROCESSOR.fullmatch(line)) is not None:
            yield CompilerMessage(
                message=match["message"].strip(),
                file=path_of(match["file"]),
                line=int(match["line"]),
                column=int(match["column"]) if match["column"] else None,
                missing_header=_missing(match["message"].strip()),
                included_at=included,
            )
        elif (match := _WITHOUT_PLACE.fullmatch(line.strip())) is not None:
            yield CompilerMessage(message=(match["message"] or match["ptx"] or match["other"]).strip())
        if not line.startswith(" "):
            included = None


def _continued(message: str, after: list[str]) -> tuple[str, str | None, int | None]:
    """The whole message, the line that it quotes, and the column of the mark below that."""
    words, quoted = [message.strip()], None
    for line in after[:_CONTINUED_MAX]:
        if line.strip() == "^" and quoted is not None:
            return " ".join(words), quoted, line.index("^") - 1
        if not line.startswith("  "):
            break
        if quoted is not None:
            words.append(quoted.strip())
        quoted = line[2:]
    return message.strip(), None, None


def _column(text: str | None, quoted: str | None, caret: int | None) -> int | None:
    """The column in the source for one in a line that is quoted from it, perhaps with macros replaced."""
    if text is None or quoted is None or caret is None:
        return None
    if text.expandtabs(1).rstrip() == quoted.expandtabs(1).rstrip():  # nvcc has blanks for tabs
        return caret
    word = re.match(r"\w+", quoted[caret - 1 :])
    if word is None:
        return None
    places = [[match.start() for match in re.finditer(rf"\b{word[0]}\b", line)] for line in (quoted, text)]
    return places[1][0] + 1 if [len(place) for place in places] == [1, 1] else None


def _missing(message: str) -> str | None:
    match = _MISSING.match(message)
    return None if match is None else match["gcc"] or match["front_end"]
