# SPDX-License-Identifier: Apache-2.0
"""What an analysis costs beside one ``nvdisasm -json`` of the same input: ``make bench``."""
