# SPDX-License-Identifier: Apache-2.0
"""Fixes of whole suggestions, for reports."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gpadvisor.model.fix import Fix
from gpadvisor.pipeline.advise import AdvisedFile
from gpadvisor.pipeline.fixes.find import edit_facts_of
from gpadvisor.pipeline.fixes.launches import kernel_launch
from gpadvisor.pipeline.fixes.offered import fixes_for
from gpadvisor.pipeline.fixes.placed import as_finding, suggestion_lines
from gpadvisor.pipeline.inputs import InputKind, input_kind
from gpadvisor.source.matching import CONTENT_HASH


def suggested_fixes(file: AdvisedFile) -> Mapping[tuple[str, str], tuple[Fix, ...]]:
    """Edits that answer suggestions, by mangled kernel and code; files are named as the advice does.

    Only of files that are, byte for byte, what was profiled or compiled.
    """
    texts = analysed_texts(file)
    result: dict[tuple[str, str], tuple[Fix, ...]] = {}
    for kernel in file.kernels:
        launch = kernel_launch(kernel.analysed.context)
        for suggestion in kernel.advice.suggestions:
            fixes: dict[str, Fix] = {}
            for name, text in texts.items():
                if lines := suggestion_lines(suggestion, {name}):
                    facts = edit_facts_of(Path(name), text)
                    for line in lines:
                        finding = as_finding(suggestion, kernel.advice.mangled, line)
                        for fix in fixes_for(finding, facts, path=name, launch=launch):
                            fixes.setdefault(fix.id, fix)
            usable = tuple(fix for fix in fixes.values() if fix.edits and not fix.creates)
            if usable and suggestion.suppressed is None:
                result[kernel.advice.mangled, suggestion.code] = usable
    return result


def analysed_texts(file: AdvisedFile) -> dict[str, str]:
    """Texts of the files here that are what was profiled or compiled, by the path that the advice names."""
    local, profiled = file.sources.local, file.sources.profiled
    compiled = file.analysis.profile is None and input_kind(file.analysis.path) is InputKind.SOURCE
    same = {match.report_path for match in file.sources.matches if match.method == CONTENT_HASH}
    return {
        name: text
        for name, text in local.items()
        if "\ufffd" not in text and (compiled or name in same or profiled.get(name) == text)
    }
