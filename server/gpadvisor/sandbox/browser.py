# SPDX-License-Identifier: Apache-2.0
"""Shows a file in the user's browser, where there is a screen for one."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path


def open_in_browser(path: Path) -> bool:
    """Ask for a window with the file; False where nobody could see one, as over ssh."""
    has_display = sys.platform != "linux" or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    )
    try:
        return has_display and webbrowser.open(path.absolute().as_uri())
    except webbrowser.Error:
        return False
