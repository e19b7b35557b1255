# SPDX-License-Identifier: Apache-2.0
"""A real Neovim with the configuration of its page: what a person would see and do there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.kernels import KERNELS, ROOT
from tests.lsp_client import PATIENCE_SECONDS
from tests.lsp_projects import make_project, report_of

KERNEL = "thermal_stencil"
NAME = "before.cu"
OLDEST = (0, 11)
_SNIPPET = re.compile(r"```lua\n-- ~/\.config/nvim/(\S+)\n(.*?)```", re.DOTALL)
_DRIVER = """
local patience, line, out, seen = tonumber(vim.env.PATIENCE) * 1000, tonumber(vim.env.LINE), vim.env.OUT, {}
local function keep() vim.fn.writefile({ vim.json.encode(seen) }, out) end
local function wait(condition) return vim.wait(patience, condition, 20) end
local function ask(method, params)
  local answers = vim.lsp.buf_request_sync(0, method, params, patience)
  for id, answer in pairs(answers or {}) do
    if vim.lsp.get_client_by_id(id).name == "gpadvisor" then return answer.result end
  end
end
local worked, problem = pcall(function()
  vim.cmd.edit("before.cu")
  wait(function() return #vim.lsp.get_clients({ name = "gpadvisor" }) > 0 end)
  wait(function()
    return #vim.tbl_filter(function(one) return one.message:find("measured") end, vim.diagnostic.get(0)) > 0
  end)
  seen.diagnostics = vim.tbl_map(function(one)
    local related = vim.tbl_get(one, "user_data", "lsp", "relatedInformation") or {}
    return { line = one.lnum, severity = one.severity, code = one.code, related = #related }
  end, vim.diagnostic.get(0))
  local document = { uri = vim.uri_from_bufnr(0) }
  local position = { line = line, character = 8 }
  seen.hover = ask("textDocument/hover", { textDocument = document, position = position })
  seen.lenses = ask("textDocument/codeLens", { textDocument = document })
  vim.lsp.codelens.refresh({ bufnr = 0 })
  wait(function() return #vim.lsp.codelens.get(0) > 0 end)
  seen.shown_lenses = #vim.lsp.codelens.get(0)
  wait(function() return #vim.lsp.inlay_hint.get({ bufnr = 0 }) > 0 end)
  seen.hints = #vim.lsp.inlay_hint.get({ bufnr = 0 })
  vim.api.nvim_win_set_cursor(0, { line + 1, 0 })
  vim.fn.inputlist = function() return 1 end
  vim.ui.select = function(items, _, choose) choose(items[1], 1) end
  vim.lsp.buf.code_action({ apply = true, filter = function(one) return one.title:find("float literal") end })
  wait(function() return vim.fn.getline(line + 1):find("2.0f") end)
  seen.edited = vim.fn.getline(line + 1)
end)
seen.problem = not worked and tostring(problem) or nil
keep()
vim.cmd("qall!")
"""


def _neovim() -> str:
    program = shutil.which("nvim")
    if program is None:
        pytest.skip("no nvim on this machine")
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.match(r"NVIM v(\d+)\.(\d+)", said)
    if found is None or (int(found[1]), int(found[2])) < OLDEST:
        pytest.skip(f"needs Neovim 0.11, {said.partition(chr(10))[0] or 'something else'} is here")
    return program


def _seen(folder: Path, line: int) -> Any:
    """What the driver noted, with the page's configuration."""
    program = _neovim()
    page = (ROOT / "docs" / "editors" / "neovim.md").read_text(encoding="utf-8")
    snippets = dict(_SNIPPET.findall(page))
    assert set(snippets) == {"lsp/gpadvisor.lua", "init.lua"}
    for name, text in snippets.items():
        place = folder / "config" / "nvim" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    command = folder / "bin" / "gpadvisor"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m gpadvisor "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    (folder / "driver.lua").write_text(_DRIVER, encoding="utf-8")
    own = {f"XDG_{kind}_HOME": str(folder / kind.lower()) for kind in ("CONFIG", "STATE", "CACHE", "DATA")}
    done = subprocess.run(
        [program, "--headless", "-S", str(folder / "driver.lua")],
        cwd=folder / "project",
        env={
            **os.environ,
            **own,
            "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}",
            "PATIENCE": str(PATIENCE_SECONDS),
            "LINE": str(line),
            "OUT": str(folder / "seen.json"),
        },
        capture_output=True,
        text=True,
        timeout=8 * PATIENCE_SECONDS,
        check=False,
    )
    assert (folder / "seen.json").exists(), done.stderr
    seen = json.loads((folder / "seen.json").read_text(encoding="utf-8"))
    assert "problem" not in seen, seen["problem"]
    return seen


@pytest.mark.toolkit
@pytest.mark.nvdisasm
def test_advice_in_neovim_as_its_page_sets_it_up(tmp_path: Path) -> None:
    make_project(tmp_path / "project", KERNEL, report=report_of(KERNEL), name=NAME)
    line = KERNELS[KERNEL].planted_line("def")
    seen = _seen(tmp_path, line)
    hints = {one["severity"] for one in seen["diagnostics"] if one["code"] == "GPA202"}
    assert hints == {4}, "the page's settings make it a hint"
    (found,) = (one for one in seen["diagnostics"] if one["code"] == "GPA102" and one["line"] == line)
    assert found["severity"] == 2
    assert found["related"]
    assert ": Strength Reduction" in seen["hover"]["contents"]["value"]
    assert re.match(r"[\d.]+x \(\S+\) .* \| 100 % of GPU time", seen["lenses"][0]["command"]["title"])
    assert seen["shown_lenses"] == len(seen["lenses"])
    assert seen["hints"]
    assert "2.0f" in seen["edited"]
