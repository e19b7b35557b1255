# SPDX-License-Identifier: Apache-2.0
"""Tables about opcodes, each block with its source."""
