"""Which formats streams of each kind may have."""

import pytest

from penstock.errors import InvalidTopology
from penstock.model.sources import FORMATS, Streams

WHERE = {
    "files": {"files": "in", "schema": "n BIGINT"},
    "redis": {"redis": "redis://127.0.0.1/0", "schema": "n BIGINT"},
    "kafka": {"kafka": "127.0.0.1:9092", "topics": ["t"], "schema": "n BIGINT"},
}


@pytest.mark.parametrize("kind", WHERE)
def test_a_kind_has_the_formats_that_make_sense_for_it(kind: str) -> None:
    for form in FORMATS[kind]:
        made = Streams(**WHERE[kind], format=form)  # type: ignore[arg-type]
        assert made.backend_options["format"] == form
    with pytest.raises(InvalidTopology, match=f"'xml'; allowed for {kind}: json, csv"):
        Streams(**WHERE[kind], format="xml")  # type: ignore[arg-type]


def test_topics_must_be_a_list() -> None:
    with pytest.raises(InvalidTopology, match="topics"):
        Streams(kafka="127.0.0.1:9092", topics="clicks", schema="n BIGINT")
