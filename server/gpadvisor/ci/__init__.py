# SPDX-License-Identifier: Apache-2.0
"""What a pipeline of continuous integration does: one analysis with its verdict, and one comment about it."""
