"""Quantiles of rows that are evenly spread over spans, against closed forms and brute force."""

import numpy as np
import pytest

from penstock.model.arrivals import Arrivals
from penstock.spark.measure.ledger import LedgerEntry, summarise
from penstock.spark.measure.spread_latencies import SpreadLatencies

SHARES = (0.5, 0.9, 0.95, 0.99, 0.999, 0.9999)
EACH = 4_000  # rows of a span in brute force


def spans(*each: tuple[float, float, float]) -> SpreadLatencies:
    """From rows, least and greatest latency."""
    return SpreadLatencies(*np.array(each, dtype=np.float64).T)


@pytest.mark.parametrize("share", SHARES)
def test_one_batch_is_a_straight_line(share: float) -> None:
    assert spans((100, 1.0, 3.0)).quantile_s(share) == pytest.approx(1.0 + 2 * share)
    assert spans((100, 3.0, 3.0)).quantile_s(share) == 3.0


def test_two_batches_are_one_line_after_another() -> None:
    # Up to 10 s 400 rows come in 10 s, less what the first 2 s lack; beyond, 10 a second.
    both = spans((100, 2.0, 12.0), (300, 0.0, 10.0))
    assert both.quantile_s(0.5) == pytest.approx((200 + 20) / 40)
    assert both.quantile_s(0.95) == pytest.approx(10.0)
    assert both.quantile_s(0.99) == pytest.approx(11.6)
    apart = spans((50, 0.0, 1.0), (50, 5.0, 6.0))
    assert apart.quantile_s(0.5) == pytest.approx(1.0)  # nobody took from 1 to 5 s
    assert apart.quantile_s(0.51) == pytest.approx(5.02)


def test_rows_of_one_moment_are_a_step() -> None:
    step = spans((90, 0.0, 1.0), (9, 4.0, 4.0), (1, 3.0, 5.0))
    assert step.quantile_s(0.9) == pytest.approx(1.0)
    assert [step.quantile_s(share) for share in (0.906, 0.95, 0.99)] == [4.0] * 3
    assert step.quantile_s(0.999) == pytest.approx(4.8)
    assert step.rows_within(4.0) == pytest.approx(99.5)
    assert step.rows_within(3.999999) == pytest.approx(90.5, abs=1e-3)


@pytest.mark.parametrize("seed", range(40))
def test_random_spans_agree_with_counting_their_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 30))
    rows, least_s = rng.integers(1, 1000, count).astype(float), rng.uniform(0, 5, count)
    width_s = rng.uniform(0, 4, count) * (rng.random(count) < 0.8)  # some came at one moment
    spread = SpreadLatencies(rows, least_s, least_s + width_s)
    places = (np.arange(EACH) + 0.5) / EACH
    every_s = (least_s[:, None] + width_s[:, None] * places).ravel()
    weight = np.repeat(rows / EACH, EACH)
    order = np.argsort(every_s)
    reached = np.cumsum(weight[order]) / rows.sum()
    for share in SHARES:
        found_s = spread.quantile_s(share)
        off = rows.max() / rows.sum() / EACH  # brute force knows shares no better than this
        low, high = (
            every_s[order][min(int(np.searchsorted(reached, part)), len(order) - 1)]
            for part in (share - 2 * off, share + 2 * off)
        )
        assert low - 4 / EACH <= found_s <= high + 4 / EACH
        assert spread.rows_within(found_s + 1e-9) >= share * rows.sum() - 1e-6


@pytest.mark.parametrize("seed", range(40))
def test_the_share_is_in_time_where_its_latency_is_within_the_bound(seed: int) -> None:
    """What the page colours and what it counts are one promise."""
    rng = np.random.default_rng(seed)
    entries = []
    for number in range(int(rng.integers(1, 12))):
        first_s, spread_s = float(rng.uniform(0, 3)), float(rng.uniform(0.1, 4))
        arrivals = (Arrivals(float(rng.integers(1, 500)), first_s, first_s + spread_s),)
        entries.append(LedgerEntry("q", number, arrivals, first_s + spread_s + rng.uniform(0, 2)))
    share = float(rng.uniform(0.5, 0.9999))
    for bound_s in rng.uniform(0, 7, 20).tolist():
        seen = summarise(entries, bound_s, share=share)
        assert seen is not None
        assert (seen.share_s <= bound_s) == (seen.in_time_share >= share)
        assert 0 < seen.share_s <= seen.max_s


@pytest.mark.parametrize("bound_s", [0.1, 2.5, 4.4, 4.9, 4.95, 5.0])
def test_they_are_one_promise_where_the_clock_was_set_back_within_a_batch(bound_s: float) -> None:
    """Rows that seem to have come after their results took no time, others what they did."""
    entries = [LedgerEntry("q", 0, (Arrivals(100.0, 0.0, 10.0),), 5.0)]
    seen = summarise(entries, bound_s, share=0.99)
    assert seen is not None
    assert (seen.share_s, seen.p95_s, seen.max_s) == pytest.approx((4.9, 4.5, 5.0))
    assert (seen.share_s <= bound_s) == (seen.in_time_share >= 0.99)
    none = summarise([LedgerEntry("q", 0, (Arrivals(100.0, 6.0, 10.0),), 5.0)], bound_s)
    assert none is not None
    assert (none.share_s, none.p95_s, none.max_s, none.in_time_share) == (0.0, 0.0, 0.0, 1.0)
