"""The settings of a source as they travel to its processes; long ones by a file beside its logs."""

from pathlib import Path

import pytest

from penstock.errors import InvalidInput
from penstock.model.sources import Streams
from penstock.spark.sources.settings import INLINE_BYTES, SourceSettings, settings_of
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant

MANY = Streams(generators={f"s{n}": Generator(constant(1.0), rows=n) for n in range(200)})


def travelled(folder: Path) -> SourceSettings:
    text = settings_of(MANY, "many", folder, 7.0).to_json()
    assert len(text) < INLINE_BYTES
    return SourceSettings.from_json(text)


def test_long_options_travel_by_a_file(tmp_path: Path) -> None:
    options = travelled(tmp_path / "many").options
    assert len(options["generators"]) == 200
    assert options["epoch_s"] == 7.0


def test_a_damaged_file_of_options_is_refused_by_name_and_written_anew(tmp_path: Path) -> None:
    text, before = settings_of(MANY, "many", tmp_path, 7.0).to_json(), travelled(tmp_path)
    file = tmp_path / "backend.json"
    damaged = file.read_bytes().replace(b'"seed": 0', b'"seed": 8', 1)
    assert damaged != file.read_bytes()
    file.write_bytes(damaged)
    with pytest.raises(InvalidInput, match=r"backend\.json is damaged"):
        SourceSettings.from_json(text)
    assert travelled(tmp_path) == before
