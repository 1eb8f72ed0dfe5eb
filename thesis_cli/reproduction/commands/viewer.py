"""Open a file in the viewer of the desktop."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import webbrowser
from pathlib import Path


def open_file(path: Path) -> str:
    """Open a picture or a page, and do not wait for the viewer.

    Returns
    -------
    Why it could not be opened, in words; empty if it was.
    """
    if sys.platform.startswith("linux") and not any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")):
        return "there is no display"
    try:
        if sys.platform.startswith("linux") and (viewer := shutil.which("xdg-open")):
            null = subprocess.DEVNULL
            subprocess.Popen([viewer, str(path)], stdin=null, stdout=null, stderr=null, start_new_session=True)
            return ""
        return "" if webbrowser.open(path.resolve().as_uri()) else "there is no viewer"
    except OSError as error:
        return f"the viewer cannot be started ({error.strerror})"
