# SPDX-License-Identifier: Apache-2.0
"""What a worker can do: each job takes and gives JSON values and calls one function."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from gpadvisor.editor.contents.analysis import advise_and_show, sass_for_editor
from gpadvisor.errors import NoTimelineError, ToolError
from gpadvisor.files import cache_folder, open_file
from gpadvisor.lsp.kept import keep_answer, plain_request
from gpadvisor.model.finding import Finding
from gpadvisor.model.fix import Fix, LaunchFacts
from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.fixes.find import check_fix, find_disable, find_fixes
from gpadvisor.pipeline.fixes.flags import write_flag
from gpadvisor.pipeline.fixes.launches import launch_facts
from gpadvisor.pipeline.request import Request
from gpadvisor.pipeline.settings import Settings
from gpadvisor.sandbox.codec import from_json
from gpadvisor.sandbox.worker import JobFunction
from gpadvisor.toolchain.discovery import find_tools
from gpadvisor.toolchain.nvrtc import find_nvrtc

Said = Callable[[str], None]
_MAX_LOOKED_AT: Final = 32 << 20


def _warm(_arguments: dict[str, Any], _said: Said) -> object:
    """Find the tools, which asks each for its version; they are remembered in this process."""
    for name in ("nvcc", "nvdisasm"):
        try:
            find_tools(name)
        except ToolError:
            continue
    find_nvrtc()
    return None


def _analyse(arguments: dict[str, Any], progress: Said) -> object:
    path = Path(arguments["path"])
    request = _request(arguments, path)
    advised, contents = advise_and_show(path, request, progress, _cache())
    launches = launch_facts(advised.analysis.kernels)
    more = arguments.get("model") == "later" and _models("known", request.settings, path)
    answer = {"analysis": contents, "launches": launches, "models": more}
    if advised.analysis.profile is not None:
        keep_answer(request, advised, answer)
    return answer


def _timeline(arguments: dict[str, Any], said: Said) -> object:
    from gpadvisor.editor.contents.run import show_run  # noqa: PLC0415  # few have one

    path = Path(arguments["path"])
    try:
        shown = show_run(path, plain_request(path, arguments), said, _cache())
    except NoTimelineError as error:
        return {"is_other": str(error)}
    return {"analysis": shown, "launches": {}}


def _find_fixes(arguments: dict[str, Any], _said: Said) -> object:
    path, text = Path(arguments["path"]), str(arguments["text"])
    request = _request(arguments, path)
    roots = [Path(root) for root in arguments["roots"]]
    findings = from_json(arguments["findings"], tuple[Finding, ...])
    launches = from_json(arguments["launches"], dict[str, LaunchFacts])
    fixes = list(find_fixes(path, text, findings, request=request, launches=launches, roots=roots))
    for line, codes, finding in arguments["disable"]:
        disable = find_disable(path, text, line, codes, request=request, roots=roots, finding=finding)
        fixes += [] if disable is None else [disable]
    return fixes


def _check_fix(arguments: dict[str, Any], progress: Said) -> object:
    path = Path(arguments["path"])
    return check_fix(
        path,
        str(arguments["text"]),
        from_json(arguments["fix"], Fix),
        request=_request(arguments, path),
        progress=progress,
        cache=_cache(),
        kernel=arguments["kernel"],
        units=[Path(unit) for unit in arguments["units"]],
    )


def _write_flag(arguments: dict[str, Any], _said: Said) -> object:
    return str(write_flag(Path(arguments["path"]), Path(arguments["root"]), str(arguments["flag"])))


def _sass(arguments: dict[str, Any], progress: Said) -> object:
    path = Path(arguments["path"])
    request = _request(arguments, path)
    return sass_for_editor(path, request, progress, _cache(), kernel=arguments["kernel"])


def _compare(arguments: dict[str, Any], progress: Said) -> object:
    from gpadvisor.pipeline.compare import compare_for_editor  # noqa: PLC0415  # seldom asked for

    before, after = Path(arguments["before"]), Path(arguments["after"])
    requests = _request(arguments, before), _request(arguments, after)
    return compare_for_editor(before, requests[0], after, requests[1], progress)


def _page(arguments: dict[str, Any], progress: Said) -> object:
    from gpadvisor.editor.contents.page import page_contents  # noqa: PLC0415  # brings every view

    path, before = Path(arguments["path"]), arguments.get("before")
    request = _request(arguments, path)._replace(prefer_launch=True)
    first = None if before is None else (Path(before), _request({**arguments, "launch": None}, Path(before)))
    page = page_contents(path, request, progress, _cache(), before=first)
    return {
        "document": json.dumps(page.document, allow_nan=False, separators=(",", ":")),
        "files": page.files,
    }


def _doctor(_arguments: dict[str, Any], _said: Said) -> object:
    from gpadvisor.profiler.doctor import render_text  # noqa: PLC0415  # seldom asked for
    from gpadvisor.profiler.doctor.examine import examine_machine  # noqa: PLC0415  # the same

    return render_text(examine_machine(), width=100, color=False)


def _tool(arguments: dict[str, Any], progress: Said) -> object:
    from gpadvisor.agents.jobs import answer_tool  # noqa: PLC0415  # brings every view

    return answer_tool(arguments, progress)


def _request(arguments: dict[str, Any], path: Path) -> Request:
    """The request that the project's and the editor's settings make."""
    request = plain_request(path, arguments)
    settings = _edited(request.settings, arguments)
    return request._replace(
        settings=settings,
        model=_models(arguments.get("model"), settings, path),
        # Perhaps no kernel has a stated launch after all, or one that can run: the command says so.
        model_needed=arguments.get("model") != "known",
    )


def _models(mode: object, settings: Settings, path: Path) -> bool:
    """Whether kernels are simulated: when asked, or where the text names one whose launch is stated."""
    if mode != "known" or not settings.launches:
        return mode == "asked"
    with open_file(path) as stream:
        text = stream.read(_MAX_LOOKED_AT)
    return any(name.encode() in text for name in settings.launches)


def _edited(settings: Settings, arguments: dict[str, Any]) -> Settings:
    """The project's settings, with what the editor sets instead."""
    if arguments.get("arch"):
        settings = settings._replace(arch=str(arguments["arch"]))
    if arguments.get("flags"):
        settings = settings._replace(flags=tuple(map(str, arguments["flags"])))
    return settings


def _cache() -> Cache:
    return Cache(cache_folder())


JOBS: Final[dict[str, JobFunction]] = {
    "warm": _warm,
    "source": _analyse,
    "profile": _analyse,
    "timeline": _timeline,
    "sass": _sass,
    "fixes": _find_fixes,
    "check": _check_fix,
    "flag": _write_flag,
    "compare": _compare,
    "page": _page,
    "doctor": _doctor,
    "tool": _tool,
}
