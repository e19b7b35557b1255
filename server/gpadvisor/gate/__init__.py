# SPDX-License-Identifier: Apache-2.0
"""What a team asks at every change: what is new since the baseline, and whether a gate lets it pass."""
