# SPDX-License-Identifier: Apache-2.0
"""One file for each feature: handlers convert, call one function, convert back."""
