"""What moving a key group costs, learnt from the moves that were made."""

from dataclasses import dataclass

import numpy as np

from penstock.allocation.problem import Floats
from penstock.control.actions import MigrationCost

FIRST_GUESS_S = 0.1  # for opening a store elsewhere; measured on one machine, corrected by moves
FIRST_GUESS_BYTES_PER_S = 100e6
NEWEST_WEIGHT = 0.5
LEAST_FACTOR, MOST_FACTOR = 0.05, 20.0  # one odd measurement must not make moves free or forbidden


@dataclass(frozen=True)
class LearntCost:
    """Seconds of loading for each key group: a guess from its size, times what was measured."""

    factor: float = 1.0

    def seconds(self, state_bytes: Floats) -> Floats:
        """What each move is expected to cost."""
        return self.factor * (FIRST_GUESS_S + state_bytes / FIRST_GUESS_BYTES_PER_S)

    def corrected(self, measured: MigrationCost) -> "LearntCost":
        """With one more measurement.

        >>> LearntCost().corrected(MigrationCost(1, 0.0, load_s=0.3, delay_s=0.0)).factor
        2.0
        """
        if measured.key_groups == 0 or not measured.load_s >= 0:
            return self
        guess_s = measured.key_groups * FIRST_GUESS_S
        guess_s += np.nan_to_num(measured.state_bytes) / FIRST_GUESS_BYTES_PER_S
        mixed = (1 - NEWEST_WEIGHT) * self.factor + NEWEST_WEIGHT * measured.load_s / guess_s
        return LearntCost(float(np.clip(mixed, LEAST_FACTOR, MOST_FACTOR)))
