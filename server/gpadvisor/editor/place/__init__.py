# SPDX-License-Identifier: Apache-2.0
"""Findings and samples in today's text."""
