"""Rate-aware panes: the excess of a large pane goes to nodes whose panes were small.

Seed 000 s.4.2. With m and d the mean and standard deviation of the sizes of recent panes, a pane
of more than m + d rows is cut: m rows stay with the node whose turn it is, and the rows beyond go
to the next nodes in turn, more of them to those that had small panes.
Differs from seed 000 s.4.2: the excess goes to all nodes below the level it can fill, not to one.
"""

from dataclasses import dataclass, replace

import numpy as np

from penstock.errors import InvalidInput
from penstock.model.observation import Floats, Ints
from penstock.routing.levelling import level

RECENT_PANES = 64
WARM_UP_PANES = 16  # fewer say little about mean and deviation


@dataclass(frozen=True)
class PaneHistory:
    """What a lane remembers from one batch to the next.

    `received_rows` is how far each node is above the least loaded one.
    """

    received_rows: Floats
    recent_sizes: Floats
    open_pane: int | None = None
    open_size: int = 0

    @property
    def mean_rows(self) -> float:
        """The moving mean of pane sizes."""
        return float(self.recent_sizes.mean())

    @property
    def limit_rows(self) -> float:
        """Panes beyond this are cut; infinite while too few were seen."""
        if len(self.recent_sizes) < WARM_UP_PANES:
            return float("inf")
        return self.mean_rows + float(self.recent_sizes.std())


def new_history(nodes: int) -> PaneHistory:
    """Nothing seen yet; also after the number of nodes has changed."""
    if nodes < 1:
        raise InvalidInput(f"nodes is {nodes}; give at least 1.")
    return PaneHistory(np.zeros(nodes), np.empty(0))


@dataclass(frozen=True)
class SubPanes:
    """How the rows of one pane in one batch are cut: rows for each node, its own node first."""

    nodes: Ints
    rows: Ints


def rate_aware_routes(panes: Ints, history: PaneHistory) -> tuple[Ints, PaneHistory]:
    """The node of each row of a batch, and what to remember.

    Rows may come in any order. A pane older than the one that is open is late: it goes whole to
    its node and is no longer counted in the statistics.
    """
    if len(panes) == 0:
        return np.empty(0, dtype=np.int64), history
    first, nodes = int(panes.min()), len(history.received_rows)
    offsets = panes - first
    spread = int(offsets.max()) + 1
    if spread > len(panes) + 65_536:  # far apart: number them by rank instead
        numbers, offsets = np.unique(panes, return_inverse=True)
        sizes = np.bincount(offsets)
    else:
        sizes = np.bincount(offsets)
        numbers = np.arange(first, first + spread)
    routes = (numbers % nodes).take(offsets)
    for place in np.flatnonzero(sizes).tolist():
        pane, size = int(numbers[place]), int(sizes[place])
        cut, history = cut_pane(pane, size, history)
        if len(cut.nodes) > 1:
            rows = np.flatnonzero(offsets == place)
            routes[rows] = np.repeat(cut.nodes, cut.rows)
    return routes, history


def cut_pane(pane: int, rows: int, history: PaneHistory) -> tuple[SubPanes, PaneHistory]:
    """Cut the next rows of a pane into sub-panes, and remember them."""
    own = pane % len(history.received_rows)
    if history.open_pane is None or pane > history.open_pane:
        history = _closed(history, pane)
    is_late = history.open_pane is not None and pane < history.open_pane
    seen = 0 if is_late else history.open_size
    received = history.received_rows.copy()
    cut = SubPanes(np.array([own]), np.array([rows]))
    if not is_late and seen + rows > history.limit_rows:
        kept = min(rows, max(0, round(history.mean_rows) - seen))
        received[own] += kept
        cut = _dealt(own, kept, rows - kept, received)
    else:
        received[own] += rows
    received -= received.min()
    size = history.open_size if is_late else seen + rows
    return cut, replace(history, received_rows=received, open_size=size)


def _dealt(own: int, kept: int, excess: int, received: Floats) -> SubPanes:
    """The excess in turn from the next node on, as far as each is behind; updates `received`."""
    turn = np.roll(np.arange(len(received)), -(own + 1))
    rows = level(received[turn], excess, 1.0)
    received[turn] += rows
    got = rows > 0
    return SubPanes(np.append(own, turn[got]), np.append(kept, rows[got]))


def _closed(history: PaneHistory, pane: int) -> PaneHistory:
    sizes = history.recent_sizes
    if history.open_size > 0:
        sizes = np.append(sizes, history.open_size)[-RECENT_PANES:]
    return replace(history, recent_sizes=sizes, open_pane=pane, open_size=0)
