# SPDX-License-Identifier: Apache-2.0
"""CUDA, Python and Julia sources: suppression comments, patterns, and which file of this machine is meant.

Import from its modules: the process that parses sources loads ``reading`` and little else, and everybody else
does without the parser.
"""
