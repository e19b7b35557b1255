# SPDX-License-Identifier: Apache-2.0
"""Compile databases and what build systems leave instead of them."""
