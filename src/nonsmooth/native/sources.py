"""The digest of the C sources, which identifies the sources of a library. `hatch_build.py` imports only this file."""

from __future__ import annotations

import hashlib
from pathlib import Path


def source_digest(folder: Path) -> str | None:
    """The digest of the C sources in a folder, or None if there are none, as in an installed wheel."""
    paths = sorted([*folder.glob("*.c"), *folder.glob("*.h")])
    if not paths:
        return None
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.name.encode() + b"\0" + path.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return digest.hexdigest()[:16]
