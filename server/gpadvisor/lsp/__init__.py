# SPDX-License-Identifier: Apache-2.0
"""The language server: the only package that knows LSP."""
