# SPDX-License-Identifier: Apache-2.0
"""The page: everything that is known of a file, in one HTML file without a network, or in an editor."""
