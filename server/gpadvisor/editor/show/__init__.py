# SPDX-License-Identifier: Apache-2.0
"""What stands where in an editor: diagnostics, hovers, lenses, hints, heat and status."""
