# SPDX-License-Identifier: Apache-2.0
"""Processes: tools, children with limits, and how a process is ended with what it started."""
