# SPDX-License-Identifier: Apache-2.0
"""Editor-facing values: findings, heat and hovers by line, and where they are in today's text."""
