# SPDX-License-Identifier: Apache-2.0
"""Calling contexts on the GPU: who called the code that takes the time (HPCToolkit 2021, section 6.3)."""
