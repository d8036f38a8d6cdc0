"""How many rows were shed in a period, for the history."""

from penstock.model.decision import RoomDecision

ROOM = "shedding"  # beside "last resort", which says why


class ShedRowsReporter:
    """Reports periods in which rows were shed."""

    def __init__(self) -> None:
        self._reported_rows: int | None = None

    def take(self, so_far: int | None, arrived: float, now_s: float) -> tuple[RoomDecision, ...]:
        """What was shed since the last call; nothing when nothing was."""
        if so_far is None:
            return ()
        before = so_far if self._reported_rows is None else self._reported_rows
        new, self._reported_rows = so_far - before, so_far
        if new <= 0:
            return ()
        numbers = {"shed_rows": float(new), "arrived_rows": arrived, "so_far": float(so_far)}
        what = f"{new} rows shed, {so_far} so far"
        why = "counted by the offsets of the batches that ended in this period"
        return (RoomDecision(now_s, ROOM, "custom", what, numbers, (why,)),)
