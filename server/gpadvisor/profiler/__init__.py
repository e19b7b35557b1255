# SPDX-License-Identifier: Apache-2.0
"""The profiler: measures an application on its GPU with what the user is allowed (GPA's first stage)."""

from __future__ import annotations
