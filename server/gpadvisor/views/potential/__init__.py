# SPDX-License-Identifier: Apache-2.0
"""What each kind of change could save at most (Sim, Dasgupta, Kim, Vuduc, PPoPP 2012: GPUPerf)."""
