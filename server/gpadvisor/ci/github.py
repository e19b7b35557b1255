# SPDX-License-Identifier: Apache-2.0
"""The calls to GitHub that one comment takes: list, create, edit; to the host that the job names alone."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from gpadvisor.errors import ToolFailedError, UsageError
from gpadvisor.files import read_file

_SECONDS: Final = 30.0
_MAX_BYTES: Final = 32 << 20
_PAGE: Final = 100
_MOST_PAGES: Final = 50
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class ForbiddenError(ToolFailedError):
    """The token may not comment: that of a fork's pull request may only read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequest:
    """Where to comment, and as whom."""

    api: str  # address of the host's interface
    repository: str  # owner/name
    number: int
    token: str = field(repr=False)


def pull_request(environment: Mapping[str, str]) -> PullRequest | None:
    """What a job of GitHub says about itself; None where it has no token, or is not about a pull request.

    Raises:
        UsageError: the address is not one to send a token to, or another value is damaged.
    """
    token, path = environment.get("GITHUB_TOKEN", "").strip(), environment.get("GITHUB_EVENT_PATH", "")
    number = _number(Path(path)) if path else None
    if not token or number is None:
        return None
    repository = environment.get("GITHUB_REPOSITORY", "")
    owner, _, name = repository.partition("/")
    if not all(
        part and part.replace("-", "a").replace(".", "a").replace("_", "a").isalnum()
        for part in (owner, name)
    ):
        raise UsageError(f"GITHUB_REPOSITORY is '{repository}', which is no owner/name")
    if any(char.isspace() or not char.isprintable() for char in token):
        raise UsageError("GITHUB_TOKEN has characters that no token has")
    return PullRequest(api=_address(environment), repository=repository, number=number, token=token)


def _address(environment: Mapping[str, str]) -> str:
    address = environment.get("GITHUB_API_URL", "")
    parts = urllib.parse.urlsplit(address)
    secure = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    if not secure or not parts.hostname or parts.username or parts.query or parts.fragment:
        raise UsageError(f"GITHUB_API_URL is '{address}', which is no https address: no token is sent there")
    return address.rstrip("/")


def _number(path: Path) -> int | None:
    """The pull request that an event is about."""
    try:
        event = json.loads(read_file(path, max_bytes=_MAX_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"GITHUB_EVENT_PATH cannot be read: {error}") from error
    pull_request_event = event.get("pull_request") if isinstance(event, dict) else None
    number = pull_request_event.get("number") if isinstance(pull_request_event, dict) else None
    return number if isinstance(number, int) and not isinstance(number, bool) and number > 0 else None


def comment(on: PullRequest, mark: str, text: str) -> str:
    """Write one comment that begins with a mark, in place of the one that does already; the address of it.

    Raises:
        ForbiddenError: the token may not.
        ToolFailedError: the host refuses, or cannot be reached.
    """
    body = {"body": f"{mark}\n{text}"}
    issues = f"/repos/{on.repository}/issues"
    for comment_id in _comments(on, mark):
        try:
            return _shown(_call(on, "PATCH", f"{issues}/comments/{comment_id}", body))
        except ForbiddenError:
            continue  # somebody else's, who quotes ours
    return _shown(_call(on, "POST", f"{issues}/{on.number}/comments", body))


def _comments(on: PullRequest, mark: str) -> Iterator[int]:
    for page in range(1, _MOST_PAGES + 1):
        path = f"/repos/{on.repository}/issues/{on.number}/comments?per_page={_PAGE}&page={page}"
        comments = _call(on, "GET", path)
        if not isinstance(comments, list):
            raise ToolFailedError("the host did not answer with a list of comments")
        for row in comments:
            if isinstance(row, dict) and str(row.get("body", "")).split("\n", 1)[0].strip() == mark:
                number = row.get("id")
                if isinstance(number, int) and not isinstance(number, bool):
                    yield number
        if len(comments) < _PAGE:
            return


def _shown(answer: Any) -> str:
    return str(answer.get("html_url", "")) if isinstance(answer, dict) else ""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A token goes to the host that was named and to no other."""

    def redirect_request(self, *_: Any, **_named: Any) -> None:
        """None makes the redirection an error."""


def _call(on: PullRequest, method: str, path: str, body: Mapping[str, str] | None = None) -> Any:
    request = urllib.request.Request(  # noqa: S310 the address was checked
        on.api + path,
        data=None if body is None else json.dumps(body).encode(),
        method=method,
        headers={
            "Authorization": f"Bearer {on.token}",
            "Accept": "application/vnd.github+json",
            "Content-Type": "application/json",
            "User-Agent": "gpadvisor",
            "X-GitHub-Api-Version": "2022-11-28",
        },
    )
    handlers: list[urllib.request.BaseHandler] = [_NoRedirects()]
    if urllib.parse.urlsplit(on.api).hostname in _LOOPBACK:
        handlers.append(urllib.request.ProxyHandler({}))
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=_SECONDS) as answer:
            data = answer.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise ToolFailedError(f"{method} {path}: the answer is larger than {_MAX_BYTES} bytes")
        return json.loads(data)
    except urllib.error.HTTPError as error:
        error.close()
        kind = ForbiddenError if error.code in {401, 403, 404} else ToolFailedError
        raise kind(f"{method} {path}: the host answers {error.code}") from error
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "reason", None) or error
        raise ToolFailedError(f"{method} {path}: no usable answer of the host ({reason})") from error
