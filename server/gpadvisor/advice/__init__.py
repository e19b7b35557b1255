# SPDX-License-Identifier: Apache-2.0
"""From matches and estimates to ranked advice with its evidence (GPA section III, "advice report")."""
