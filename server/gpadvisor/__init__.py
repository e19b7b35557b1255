# SPDX-License-Identifier: Apache-2.0
"""GPAdvisor: advice for CUDA kernels from PC samples and machine code (GPA, CGO'21)."""

__version__ = "0.1.0"
