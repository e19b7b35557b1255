# SPDX-License-Identifier: Apache-2.0
"""Databases of HPCToolkit, version 4: names and contexts, values by profile and by context, traces."""
