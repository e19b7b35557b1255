# SPDX-License-Identifier: Apache-2.0
"""External tools: finding and running nvdisasm, cuobjdump and the compilers, with limits."""
