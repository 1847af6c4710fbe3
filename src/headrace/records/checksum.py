"""The checksum of batches and producer snapshots: CRC-32C, by the package of that name.

Its function is taken from the compiled part alone. The package around it reads its own metadata when it is
imported, which was a tenth of the time that a node needs to start.
"""

from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Final, Protocol

from headrace.ports import BytesLike


class Checksum(Protocol):
    """The checksum of some bytes, or of those and all before them, whose checksum is `before`."""

    def __call__(self, data: BytesLike, before: int = 0, /) -> int: ...


def _compiled() -> Checksum | None:
    """The function of the compiled part; None if the package is laid out in another way."""
    package = find_spec("crc32c")
    places = None if package is None else package.submodule_search_locations
    found = PathFinder.find_spec("crc32c._crc32c", places) if places else None
    if found is None or found.loader is None:
        return None
    part = module_from_spec(found)
    found.loader.exec_module(part)
    function: Checksum | None = getattr(part, "crc32c", None)
    return function


def _packaged() -> Checksum:
    from crc32c import crc32c

    function: Checksum = crc32c
    return function


crc32c: Final[Checksum] = _compiled() or _packaged()
