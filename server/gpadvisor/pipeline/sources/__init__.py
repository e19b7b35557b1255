# SPDX-License-Identifier: Apache-2.0
"""The sources of this machine: found, matched with those of a profile, and parsed in a child process."""
