"""What a person reads on the terminal while a topology runs."""

import pytest

from penstock.cli.live import LiveView
from penstock.control.step import Step


def test_what_sources_say_is_shown_once_as_long_as_it_lasts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    view = LiveView("road", 5.0, None)
    said: list[str] = ["source trips: no stream has come yet"]
    view.notes = lambda: said
    for at_s in (5.0, 10.0):
        view.step(Step(at_s))
    said[:] = ["source trips: declared streams: streams.toml is no TOML"]
    view.step(Step(15.0))
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if line.startswith("  ")] == [
        "  source trips: no stream has come yet",
        "  source trips: declared streams: streams.toml is no TOML",
    ]
