"""Archives of data directories, unpacked on every Python from 3.11.0 on."""

import tarfile
from pathlib import Path


def unpack_archive(archive: Path, target: Path) -> None:
    """Extract an archive that is part of the project.

    `extractall(filter=…)` came with a bug-fix release; the attribute is ignored before it and heeded after.
    """
    with tarfile.open(archive) as opened:
        opened.extraction_filter = lambda member, path: member
        opened.extractall(target)
