# SPDX-License-Identifier: Apache-2.0
"""From an application to a snapshot, here or on another machine."""
