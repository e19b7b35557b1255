# SPDX-License-Identifier: Apache-2.0
"""The only place that joins the stages: open an input, disassemble, analyse, advise, cache."""
