# SPDX-License-Identifier: Apache-2.0
"""The values that flow between the stages: no input or output, no algorithms, nothing but numpy."""
