"""Where programs of a user keep their data on this platform."""

import sys
from collections.abc import Mapping
from os.path import expanduser, join


def data_home(environment: Mapping[str, str], platform: str = sys.platform) -> str:
    """The directory of `headrace up`, which need not be there yet."""
    home = environment.get("HOME") or expanduser("~")
    if platform == "darwin":
        return join(home, "Library", "Application Support", "Headrace")
    chosen = environment.get("XDG_DATA_HOME", "")
    # The standard has relative paths ignored.
    base = chosen if chosen.startswith("/") else join(home, ".local", "share")
    return join(base, "headrace")
