# SPDX-License-Identifier: Apache-2.0
"""The instruction roofline (Ding, Williams, PMBS 2019) of a kernel, its loops and its lines."""
