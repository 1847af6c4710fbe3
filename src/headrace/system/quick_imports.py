"""Spares a process imports that cost more than they give."""

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES, PathFinder
from importlib.util import module_from_spec, spec_from_file_location

_PACKAGE = "crc32c"
_EXTENSION = "_crc32c"


def load_crc32c_alone() -> None:
    """Let `crc32c` be its compiled part: the package around it asks for its own version and brings a command,
    which takes a tenth of a node's start and some megabytes. Does nothing if it looks different than that."""
    if _PACKAGE in sys.modules:
        return
    package = PathFinder.find_spec(_PACKAGE)
    for directory in (package and package.submodule_search_locations) or ():
        for suffix in EXTENSION_SUFFIXES:
            path = f"{directory}/{_EXTENSION}{suffix}"
            if os.path.exists(path):
                spec = spec_from_file_location(f"{_PACKAGE}.{_EXTENSION}", path)
                if spec is not None and spec.loader is not None:
                    module = module_from_spec(spec)
                    spec.loader.exec_module(module)
                    if hasattr(module, _PACKAGE):
                        sys.modules[_PACKAGE] = module
                return
