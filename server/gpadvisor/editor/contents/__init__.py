# SPDX-License-Identifier: Apache-2.0
"""From an analysis to what an editor shows of it; runs in a worker process."""
