# SPDX-License-Identifier: Apache-2.0
"""Advice for readers of every kind: text, Markdown, JSON and SARIF, from the Advice value alone."""
