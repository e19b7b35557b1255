# SPDX-License-Identifier: Apache-2.0
"""What a cure would give: the paper's equations, and a range that says why it departs from them (GPA V-B)."""
