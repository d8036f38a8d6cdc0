"""What makes a directory a channel: its header, and the places below it."""

import json
from pathlib import Path

from penstock.errors import InvalidInput
from penstock.spark.checkpoint.durable_files import is_leftover, make_directory, write_atomically
from penstock.spark.checkpoint.sealed import read_sealed

FORMAT = "penstock-channel"
VERSION = 1
HEADER = "channel.json"
PLACES = ("log", "data", "readers")
_OURS = {*PLACES, HEADER, "lock", "_staged"}


def refuse_foreign(directory: Path) -> None:
    """Refuse a directory that holds what is not of a channel."""
    if any(path.name not in _OURS and not is_leftover(path.name) for path in directory.iterdir()):
        raise InvalidInput(f"channel {directory} holds other files; name an empty directory.")


def write_header(directory: Path, schema_json: str) -> None:
    """Make the directory a channel, unless it is one; the header comes last."""
    for name in PLACES:
        make_directory(directory / name)
    if not (directory / HEADER).exists():
        header = {"format": FORMAT, "version": VERSION, "schema": json.loads(schema_json)}
        write_atomically(directory / HEADER, header)


def read_schema(directory: Path) -> str:
    """The schema in the header, as JSON; a sentence where the directory is no channel."""
    try:
        header = read_sealed(directory / HEADER)
    except FileNotFoundError as error:
        raise InvalidInput(
            f"{directory} is not a channel: it has no channel.json; name one that a writer made."
        ) from error
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"{directory} is not a channel: its channel.json is damaged ({error}); restore it, or "
            "start with another directory."
        ) from error
    if header.get("format") != FORMAT or "schema" not in header:
        raise InvalidInput(
            f"{directory} is not a channel: its channel.json describes something else."
        )
    if header.get("version") != VERSION:
        raise InvalidInput(
            f"channel {directory} has version {header.get('version')!r}; this Penstock reads "
            f"version {VERSION}."
        )
    return json.dumps(header["schema"])
