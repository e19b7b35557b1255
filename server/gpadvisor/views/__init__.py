# SPDX-License-Identifier: Apache-2.0
"""Views of a kernel beside its advice, one room each."""
