# SPDX-License-Identifier: Apache-2.0
"""Quick fixes: found in the source, compiled before and after, and said in words."""
