"""What of a batch's work is its own, and what its rows'."""

from dataclasses import replace

import numpy as np
import pytest

from penstock.model.batch_overhead import BatchOverhead
from penstock.model.observation import BatchObservation, NodeObservation, Observation
from penstock.scaling.models.batch_work import BatchWork, learn_work, marginal
from penstock.scaling.models.microbatch import Microbatch
from penstock.scaling.models.network import Network


def seen(rows: float, own_s: float = 2.2, per_row_s: float = 0.0057) -> Observation:
    work_s, slots, overhead_s = own_s + per_row_s * rows, 4, 1.3
    batches = BatchObservation(1, overhead_s + work_s / slots, overhead_s, rows)
    nodes = (NodeObservation("n", slots, 1.0),)
    return Observation(3.0, 3.0, 100.0, 0.0, nodes=nodes, batches=batches)


def network(rate: float, per_row_s: float) -> Network:
    one = np.ones(1)
    return Network(("a",), rate * one, one / per_row_s, one, one, one, rate)


def test_batches_of_unlike_sizes_tell_the_two_apart() -> None:
    found = learn_work([seen(rows) for rows in (200, 400, 600, 1000, 1200)])
    assert found is not None
    assert found.own_s == pytest.approx(2.2)
    assert found.per_row_s == pytest.approx(0.0057)


def test_too_little_or_nothing_to_tell_apart_tells_nothing() -> None:
    assert learn_work([seen(rows) for rows in (200, 1200)]) is None
    assert learn_work([seen(rows) for rows in (200, 201, 202, 203, 204, 205)]) is None
    none = [replace(seen(rows), batches=None) for rows in (200, 400, 600, 1000, 1200)]
    assert learn_work(none) is None
    assert learn_work([seen(rows, own_s=0.0) for rows in (200, 400, 600, 1000, 1200)]) is None


def test_four_times_the_rate_does_not_need_four_times_the_processors() -> None:
    work = BatchWork(2.2, 0.0057)
    looks_dear = network(480.0, (2.2 + 0.0057 * 180) / 180)  # as batches of 180 rows show it
    plain = Microbatch(BatchOverhead(1.3)).minimum(looks_dear, 4.8, 64)
    model = Microbatch(BatchOverhead(1.3, work_s=work.own_s))
    least = model.minimum(marginal(looks_dear, work), 4.8, 64)
    assert plain.processors > 12
    assert least.processors == 6
    assert model.at(480 * 0.0057, 6) == pytest.approx(1.5 * (1.3 + 2.2 / 6) / (1 - 2.736 / 6))


def test_work_is_only_taken_off_rows_that_seem_dearer() -> None:
    cheap = network(100.0, 0.001)
    assert marginal(cheap, BatchWork(1.0, 0.005)) is cheap
    assert marginal(cheap, None) is cheap


def test_the_best_number_is_where_the_formula_says() -> None:
    model = Microbatch(BatchOverhead(0.5, 0.05, 2.0))
    best = min(range(4, 200), key=lambda k: model.at(3.0, k))
    assert model.assign(network(300.0, 0.01), 200).processors == best
