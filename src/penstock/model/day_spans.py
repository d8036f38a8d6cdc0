"""Spans of the day as people write them: '22:00-06:00,12:00-12:30'."""

import re

from penstock.errors import InvalidInput, shown

_FORM = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)")


def read_spans(text: str, field: str) -> tuple[tuple[int, int], ...]:
    """Minutes of the day, from and until, or a sentence that says how they are written.

    >>> read_spans("22:00-06:00, 12:00-12:30", "excluded-times")
    ((1320, 360), (720, 750))
    """
    spans = []
    for part in text.split(","):
        match = _FORM.fullmatch(part.strip())
        hours = [int(number) for number in match.groups()] if match else [0, 0, 0, 0]
        start, end = hours[0] * 60 + hours[1], hours[2] * 60 + hours[3]
        if match is None or start == end:
            raise InvalidInput(
                f"{field} is {shown(text)}; write spans such as '22:00-06:00,12:00-12:30', or off."
            )
        spans.append((start, end))
    return tuple(spans)
