# SPDX-License-Identifier: Apache-2.0
"""Answers for coding agents: bounded, by schema, with evidence; over the Model Context Protocol."""
