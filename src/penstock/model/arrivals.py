"""When rows arrived, as counts and moments that travel with a batch."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Arrivals:
    """The rows a batch took from one source, as evenly spread between first and last arrival.

    What comes through a channel also carries the mean, and may be a share of the rows behind it.
    """

    rows: float
    first_s: float
    last_s: float
    middle_s: float | None = None

    @property
    def mean_s(self) -> float:
        """Mean arrival."""
        return (self.first_s + self.last_s) / 2 if self.middle_s is None else self.middle_s

    def later_than(self, moment_s: float) -> float:
        """How many of them arrived after a moment."""
        if self.last_s <= self.first_s:
            return float(self.rows if self.last_s > moment_s else 0)
        share = (self.last_s - moment_s) / (self.last_s - self.first_s)
        return self.rows * min(max(share, 0.0), 1.0)
