# SPDX-License-Identifier: Apache-2.0
"""What a client can do, as far as the server asks; what it does not announce, it cannot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lsprotocol import types as lsp


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFeatures:
    """Answers to every question that the server has about its client."""

    own: bool = False  # our extension: understands ``protocol``
    related_information: bool = False
    code_description: bool = False
    diagnostic_data: bool = False
    progress: bool = False
    lens_refresh: bool = False
    hint_refresh: bool = False
    watches_files: bool = False
    configuration: bool = False
    configuration_changes: bool = False  # may be registered for
    action_literals: bool = False
    preferred_actions: bool = False
    versioned_edits: bool = False
    disabled_actions: bool = False  # shown with the reason, where asked for
    applies_edits: bool = False
    show_document: bool = False
    ask_actions: bool = False  # buttons of a message
    markdown: bool = False  # in hovers


def client_features(capabilities: lsp.ClientCapabilities) -> ClientFeatures:
    """Read a client's announcement."""
    text = capabilities.text_document or lsp.TextDocumentClientCapabilities()
    workspace = capabilities.workspace or lsp.WorkspaceClientCapabilities()
    window = capabilities.window or lsp.WindowClientCapabilities()
    published = text.publish_diagnostics or lsp.PublishDiagnosticsClientCapabilities()
    actions = text.code_action or lsp.CodeActionClientCapabilities()
    edit = workspace.workspace_edit or lsp.WorkspaceEditClientCapabilities()
    watched, changed = workspace.did_change_watched_files, workspace.did_change_configuration
    return ClientFeatures(
        own=_own(capabilities.experimental),
        related_information=bool(published.related_information),
        code_description=bool(published.code_description_support),
        diagnostic_data=bool(published.data_support),
        progress=bool(window.work_done_progress),
        lens_refresh=bool(workspace.code_lens and workspace.code_lens.refresh_support),
        hint_refresh=bool(workspace.inlay_hint and workspace.inlay_hint.refresh_support),
        watches_files=bool(watched and watched.dynamic_registration),
        configuration=bool(workspace.configuration),
        configuration_changes=bool(changed and changed.dynamic_registration),
        action_literals=actions.code_action_literal_support is not None,
        preferred_actions=bool(actions.is_preferred_support),
        versioned_edits=bool(edit.document_changes),
        disabled_actions=bool(actions.disabled_support),
        applies_edits=bool(workspace.apply_edit),
        show_document=bool(window.show_document and window.show_document.support),
        ask_actions=window.show_message is not None,
        markdown=_markdown(text.hover),
    )


def _own(experimental: object) -> bool:
    """Unknown objects arrive as named tuples or mappings, whatever the library makes of them."""
    if isinstance(experimental, Mapping):
        return experimental.get("gpadvisor") is True
    return getattr(experimental, "gpadvisor", None) is True


def _markdown(hover: lsp.HoverClientCapabilities | None) -> bool:
    formats = (hover.content_format if hover is not None else None) or ()
    return lsp.MarkupKind.Markdown in formats
