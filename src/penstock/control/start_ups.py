"""How long new executors take until they serve, measured from what was asked for and seen."""

from collections import deque
from dataclasses import dataclass, field

from penstock.model.observation import Observation

REMEMBERED = 5  # start-ups; the slowest of them is what to expect


@dataclass
class StartUps:
    """Requests that are not met yet, and how long the last ones took."""

    _waiting: deque[tuple[float, int]] = field(default_factory=deque)
    _took_s: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    @property
    def expected_s(self) -> float | None:
        """The slowest of the last start-ups; None before the first."""
        return max(self._took_s, default=None)

    def asked(self, at_s: float, before: int, processors: int) -> None:
        """So many processors are to serve, of which some did; requests for more are off."""
        while self._waiting and self._waiting[-1][1] >= processors:
            self._waiting.pop()
        if processors > before:
            self._waiting.append((at_s, processors))

    def saw(self, observation: Observation) -> None:
        """Requests that are met by now took until this observation, at the most."""
        while self._waiting and observation.processors >= self._waiting[0][1]:
            asked_at_s, _ = self._waiting.popleft()
            self._took_s.append(max(0.0, observation.at_s - asked_at_s))
