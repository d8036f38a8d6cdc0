"""JSON files of ours carry a checksum: a damaged byte is found, and never read as data.

The checksum is a key of the document, and the file ends with a newline. A file with neither is from
before there were checksums and is believed; one byte cannot make a sealed file look like that.
"""

import json
import zlib
from pathlib import Path
from typing import Any

KEY = "crc32"


def sealed(document: dict[str, Any]) -> bytes:
    """A document as it is written.

    >>> unsealed(sealed({"row": 7}))
    {'row': 7}
    """
    whole = {**document, KEY: _checksum(document)}
    return json.dumps(whole, sort_keys=True).encode() + b"\n"


def unsealed(data: bytes) -> dict[str, Any]:
    """The document that was written; ValueError with what is wrong if it is another."""
    document = json.loads(data)  # bytes that are no text are a ValueError as well
    if not isinstance(document, dict):
        raise ValueError("not an object")
    checksum = document.pop(KEY, None)
    if (checksum is not None or data.endswith(b"\n")) and checksum != _checksum(document):
        raise ValueError("its checksum does not fit")
    return document


def read_sealed(file: Path) -> dict[str, Any]:
    """The same from a file; OSError where it cannot be read."""
    return unsealed(file.read_bytes())


def _checksum(document: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(document, sort_keys=True).encode())
