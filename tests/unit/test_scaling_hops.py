"""The model of batches through components that run apart, against batches that are simulated."""

import itertools
import math

import numpy as np
import pytest

from penstock.model.batch_overhead import BatchOverhead
from penstock.scaling.models.hops import Hops, Way, way
from penstock.scaling.models.microbatch import Microbatch
from penstock.scaling.models.network import Network, network

RATE = 100.0


def chained(work_s: list[float], passes: list[float] | None = None) -> Network:
    """Components one after another, with work for each external row."""
    size = len(work_s)
    arrivals = np.full(size, RATE) * (passes or [1.0] * size)
    names = tuple(map(str, range(size)))
    return network(names, arrivals, 1 / np.array(work_s), RATE)


def chain_way(size: int) -> Way:
    senders = ((), *((i,) for i in range(size - 1)))
    share = ((), *((1.0,) for _ in range(size - 1)))
    return way(senders, share, np.eye(size)[-1])


def hops(fixed_s: list[float], interval_s: float = 0.0) -> Hops:
    return Hops(chain_way(len(fixed_s)), tuple(map(BatchOverhead, fixed_s)), interval_s)


def simulated(
    fixed_s: list[float], per_row_s: list[float], interval_s: float = 0.0, loop: float = 0.0,
    until_s: float = 400.0,
) -> float:  # fmt: skip
    """Mean latency of rows through batches, one component after another, on a clock of events.

    Rows come evenly to the first. A share `loop` of what the last one works through comes back to
    it. Each queue holds bulks of (time it is there, rows, sum of their arrival times).
    """
    size = len(fixed_s)
    queues: list[list[tuple[float, float, float]]] = [[] for _ in range(size)]
    free, taken_to, clock = [0.0] * size, 0.0, 0.0
    late = count = 0.0
    while clock < until_s:
        begins = []
        for i in range(size):
            ready = min((there for there, _, _ in queues[i]), default=math.inf)
            at = max(free[i], 0.0 if i == 0 else ready)
            if interval_s > 0 and at < math.inf:
                at = math.ceil(at / interval_s - 1e-9) * interval_s
            begins.append(at if i else max(at, taken_to + 1e-3))
        i = int(np.argmin(begins))
        clock = begins[i]
        if i == 0:
            queues[0].append((clock, RATE * (clock - taken_to),
                              RATE * (clock**2 - taken_to**2) / 2))  # fmt: skip
            taken_to = clock
        mine = [bulk for bulk in queues[i] if bulk[0] <= clock + 1e-9]
        queues[i] = [bulk for bulk in queues[i] if bulk[0] > clock + 1e-9]
        rows, came = sum(b[1] for b in mine), sum(b[2] for b in mine)
        free[i] = clock + fixed_s[i] + rows * per_row_s[i]
        out = 1.0
        if i == size - 1:
            out = 1.0 - loop
            if loop and rows > 1e-3:
                queues[i].append((free[i], loop * rows, loop * came))
            if clock > until_s / 4:
                late += out * (rows * free[i] - came)
                count += out * rows
        else:
            queues[i + 1].append((free[i], rows, came))
    return late / count


CHAINS = [
    ([0.3], [0.004]),
    ([0.5, 0.2], [0.002, 0.003]),  # the second rests between bulks
    ([0.2, 0.5], [0.002, 0.003]),  # the second is always busy
    ([0.3, 0.2, 0.9], [0.001, 0.004, 0.002]),
    ([0.8, 0.3, 0.25], [0.003, 0.004, 0.005]),
]


@pytest.mark.parametrize(("fixed_s", "per_row_s"), CHAINS)
@pytest.mark.parametrize("interval_s", [0.0, 2.0])
def test_batches_through_hops_take_as_long_as_the_model_says(
    fixed_s: list[float], per_row_s: list[float], interval_s: float
) -> None:
    expected = hops(fixed_s, interval_s).latency_s(chained(per_row_s), np.ones(len(fixed_s), int))
    assert expected == pytest.approx(simulated(fixed_s, per_row_s, interval_s), rel=0.1)


@pytest.mark.parametrize("loop", [0.2, 0.5])
def test_what_comes_back_goes_through_again(loop: float) -> None:
    fixed_s, per_row_s = [0.4, 0.3], [0.002, 0.002]
    through = 1 / (1 - loop)
    model = Hops(
        way(((), (0, 1)), ((), (1 - loop, loop)), np.array([0.0, 1.0])),
        tuple(map(BatchOverhead, fixed_s)),
    )
    assert model.way.passes == pytest.approx((1.0, through))
    expected = model.latency_s(chained(per_row_s, [1.0, through]), np.ones(2, int))
    assert expected == pytest.approx(simulated(fixed_s, per_row_s, loop=loop), rel=0.1)


def test_one_component_is_a_micro_batch() -> None:
    for interval_s in (0.0, 0.1, 3.0):
        alone = Microbatch(BatchOverhead(0.3), interval_s)
        assert hops([0.3], interval_s).latency_s(chained([0.004]), np.array([2])) == pytest.approx(
            alone.at(0.4, 2)
        )


def test_a_component_that_cannot_keep_up_has_no_latency() -> None:
    assert math.isinf(hops([0.3, 0.3]).latency_s(chained([0.02, 0.001]), np.array([2, 1])))


def test_splits_are_as_good_as_the_best_of_all() -> None:
    rng = np.random.default_rng(3)
    best = 0
    for _ in range(12):
        growth = rng.uniform(0, 0.05)
        overheads = tuple(BatchOverhead(fixed, growth) for fixed in rng.uniform(0.1, 1.0, 3))
        model = Hops(chain_way(3), overheads)
        net = chained(rng.uniform(0.002, 0.03, 3).tolist())
        most = 12
        splits = [np.array(one) for one in itertools.product(range(1, 11), repeat=3)]
        splits = [one for one in splits if one.sum() <= most]
        latency = [model.latency_s(net, one) for one in splits]
        lowest = min(latency)
        found = model.assign(net, most)
        assert found.latency_s <= 1.05 * lowest
        bound = 1.2 * lowest
        fewest = min(int(s.sum()) for s, t in zip(splits, latency, strict=True) if t <= bound)
        kept = model.minimum(net, bound, most)
        assert kept.latency_s <= bound
        assert kept.processors <= fewest + 1
        best += kept.processors == fewest
    assert best >= 10


def test_what_cannot_be_met_says_so_with_the_best_there_is() -> None:
    net = chained([0.02, 0.01])
    late = hops([0.3, 0.3]).minimum(net, 0.1, 9)
    assert late.infeasible is not None
    assert "the best is" in late.infeasible
    few = hops([0.3, 0.3]).minimum(net, 9.0, 3)
    assert few.least_processors == 5
    assert few.processors == 3
