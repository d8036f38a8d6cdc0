"""Rate-aware panes: the excess of a large pane goes to nodes whose panes were small.

Balkesen et al. 2013, s. 4.2. With m and d the mean and standard deviation of the sizes of recent
panes, a pane of more than m + d rows is cut: m rows stay with the node whose turn it is, and the
rows beyond go to the next nodes in turn, more of them to those that had small panes: all are filled
to one level of what they got in the last round, in which each node had one pane of its own.
Differs from Balkesen et al. 2013, s. 4.2: the excess goes to all nodes below that level, not to the
next alone. And where rows are processed in batches, a batch with fewer panes than nodes would keep
most nodes idle: no pane of it gives a node more than an even share of the batch, and what is beyond
is dealt so that all nodes have as many of the batch's rows.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from penstock.errors import InvalidInput
from penstock.model.observation import Floats, Ints
from penstock.routing.levelling import level

RECENT_PANES = 64
LEAST_SUB_PANE = 64  # rows; fewer are not worth a part of their own
WARM_UP_PANES = 16  # fewer say little about mean and deviation


def pane_length(window: int, slide: int) -> int:
    """gcd(w, s) of window w and slide s, in the unit they are given in (ticks or rows).

    >>> pane_length(12, 4)
    4
    """
    if window < 1 or slide < 1:
        raise InvalidInput(
            f"window is {window} and slide is {slide}; give whole numbers of at least 1."
        )
    return math.gcd(window, slide)


def pane_numbers(ticks: ArrayLike, length: int) -> Ints:
    """The pane each row belongs to, by its time in ticks or its number in the stream."""
    return np.asarray(ticks, dtype=np.int64) // length


def pane_routes(panes: Ints, nodes: int) -> Ints:
    """Whole panes to the nodes in turn."""
    return panes % nodes


@dataclass(frozen=True)
class SubPanes:
    """How the rows of one pane in one batch are cut: rows for each node, its own node first."""

    nodes: Ints
    rows: Ints


@dataclass(frozen=True)
class PaneHistory:
    """What a lane remembers from one batch to the next.

    `last_round` is how the last panes were dealt, as many as there are nodes, and `received_rows`
    what each node got of them; `recent_sizes` are those of panes that are complete.
    """

    received_rows: Floats
    recent_sizes: Floats
    last_round: tuple[SubPanes, ...] = ()
    open_pane: int | None = None
    open_size: int = 0

    @property
    def mean_rows(self) -> float:
        """The moving mean of pane sizes."""
        return float(self.recent_sizes.sum()) / max(1, len(self.recent_sizes))

    @property
    def limit_rows(self) -> float:
        """Panes beyond this are cut; infinite while too few were seen."""
        if len(self.recent_sizes) < WARM_UP_PANES:
            return math.inf
        mean = self.mean_rows
        squares = float(self.recent_sizes @ self.recent_sizes) / len(self.recent_sizes)
        return mean + math.sqrt(max(0.0, squares - mean * mean))


def new_history(nodes: int) -> PaneHistory:
    """Nothing seen yet; also after the number of nodes has changed."""
    if nodes < 1:
        raise InvalidInput(f"nodes is {nodes}; give at least 1.")
    return PaneHistory(np.zeros(nodes), np.empty(0))


def rate_aware_routes(panes: Ints, history: PaneHistory) -> tuple[Ints, PaneHistory]:
    """The node of each row of a batch, and what to remember.

    Rows may come in any order. A pane older than the one that is open is late: it goes whole to
    its node and is no longer counted in the statistics.
    """
    if len(panes) == 0:
        return np.empty(0, dtype=np.int64), history
    starts = np.append(0, np.flatnonzero(panes[1:] != panes[:-1]) + 1)
    numbers = panes[starts]
    if not bool((numbers[1:] > numbers[:-1]).all()):
        order = np.argsort(panes, kind="stable")
        ordered, history = rate_aware_routes(panes[order], history)
        routes = np.empty(len(panes), dtype=np.int64)
        routes[order] = ordered
        return routes, history
    sizes = np.diff(starts, append=len(panes))
    routes, end = np.empty(len(panes), dtype=np.int64), 0
    nodes = len(history.received_rows)
    batch = _Batch(-(-len(panes) // nodes), np.zeros(nodes)) if len(numbers) < nodes else None
    for pane, size in zip(numbers.tolist(), sizes.tolist(), strict=True):
        cut, history = cut_pane(pane, size, history, batch)
        for node, rows in zip(cut.nodes.tolist(), cut.rows.tolist(), strict=True):
            routes[end : end + rows] = node
            end += rows
    return routes, history


@dataclass(frozen=True)
class _Batch:
    """A batch with fewer panes than nodes."""

    share_rows: int  # of each node
    dealt: Floats  # rows of the batch that each node has; kept up to date


def cut_pane(
    pane: int, rows: int, history: PaneHistory, batch: _Batch | None = None
) -> tuple[SubPanes, PaneHistory]:
    """Cut the next rows of a pane into sub-panes, and remember them."""
    own = pane % len(history.received_rows)
    if history.open_pane is None or pane > history.open_pane:
        history = _opened(history, pane)
    is_late = history.open_pane is not None and pane < history.open_pane
    seen = 0 if is_late else history.open_size
    received = history.received_rows.copy()
    kept = rows
    if not is_late and seen + rows > history.limit_rows:
        kept = min(rows, max(0, round(history.mean_rows) - seen))
    if not is_late and batch is not None:
        kept = min(kept, max(batch.share_rows - int(batch.dealt[own]), LEAST_SUB_PANE))
        batch.dealt[own] += kept
    received[own] += kept
    cut = _dealt(own, kept, rows - kept, received if batch is None else batch.dealt)
    if batch is not None:
        np.add.at(received, cut.nodes[1:], cut.rows[1:])
    newest = history.last_round[-1]
    joined = SubPanes(np.append(newest.nodes, cut.nodes), np.append(newest.rows, cut.rows))
    size = history.open_size if is_late else seen + rows
    return cut, replace(
        history,
        received_rows=received,
        last_round=(*history.last_round[:-1], joined),
        open_size=size,
    )


def _dealt(own: int, kept: int, excess: int, received: Floats) -> SubPanes:
    """The excess in turn from the next node on, as far as each is behind; updates `received`."""
    if excess == 0:
        return SubPanes(np.array([own]), np.array([kept]))
    turn = np.arange(own + 1, own + 1 + len(received)) % len(received)
    rows = level(received[turn], excess, 1.0)
    received[turn] += rows
    got = rows > 0
    return SubPanes(np.append(own, turn[got]), np.append(kept, rows[got]))


def _opened(history: PaneHistory, pane: int) -> PaneHistory:
    """The history with the open pane complete, and the next one begun."""
    sizes, dealt, received = history.recent_sizes, history.last_round, history.received_rows
    if history.open_size > 0:
        sizes = np.append(sizes, history.open_size)[-RECENT_PANES:]
    if len(dealt) == len(received):
        received = received.copy()
        np.subtract.at(received, dealt[0].nodes, dealt[0].rows)
        dealt = dealt[1:]
    begun = SubPanes(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
    return PaneHistory(received, sizes, (*dealt, begun), pane, 0)
