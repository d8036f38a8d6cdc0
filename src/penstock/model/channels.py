"""Inputs that are channels: logs that other queries, or this topology itself, write."""

from dataclasses import dataclass

from penstock.errors import InvalidTopology


@dataclass(frozen=True)
class FromChannel:
    """Rows that another query published in the channel at `path`, read under a name of one's own.

    `watermark` is (column, delay) if the rows had one when they were published. Where one is used,
    published batches must be read `whole`: a part of one could make the rest of it late.
    """

    path: str
    reader: str
    max_rows: int | None = None
    watermark: tuple[str, str] | None = None
    whole: bool = False
    windows: tuple[str, ...] = ()  # columns that are time windows, which files do not record

    def __post_init__(self) -> None:
        if not self.path:
            raise InvalidTopology("FromChannel(path) is empty; name the directory of a channel.")
        if not self.reader or "/" in self.reader or self.reader.startswith("."):
            raise InvalidTopology(
                f"FromChannel(reader) is {self.reader!r}; give a name without '/' or leading dot."
            )
        if self.max_rows is not None and self.max_rows < 1:
            raise InvalidTopology(
                f"FromChannel(max_rows) is {self.max_rows!r}; it must be at least 1."
            )


@dataclass(frozen=True)
class Feedback:
    """What an operator further down emitted, coming back: the closing edge of a loop.

    The schema is declared, as SQL writes columns, since the operator's own depends on this input.
    """

    operator: str
    schema: str
