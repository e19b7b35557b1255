# SPDX-License-Identifier: Apache-2.0
"""Tables of the simulator as TOML files."""
