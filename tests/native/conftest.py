# SPDX-License-Identifier: Apache-2.0
"""The stand-in, built once for all tests of this folder."""

from __future__ import annotations

import pytest
from tests.injection import Stand, build_stand


@pytest.fixture(scope="session")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Stand:
    return build_stand(tmp_path_factory.mktemp("stand"))
