"""The latency models against ciw, an independent simulator, on networks with splits and a loop."""

import math
from collections.abc import Sequence

import ciw
import numpy as np
import pytest

from penstock.scaling.models.jackson import GIGK, MMK
from penstock.scaling.models.network import network
from penstock.scaling.models.traffic import arrival_rates

NAMES = ["generate", "detect", "report", "archive"]
# A split (generate to detect and archive), a join (report) and a loop (detect to itself).
ROUTING = [
    [0.0, 0.7, 0.0, 0.3],
    [0.0, 0.2, 0.6, 0.0],
    [0.0, 0.0, 0.0, 0.0],
    [0.0, 0.0, 0.5, 0.0],
]
ENTRY = 4.0
SERVICE = [1.5, 1.2, 2.0, 1.0]
PROCESSORS = [4, 4, 2, 3]


def simulated(
    arrival: ciw.dists.Distribution,
    services: Sequence[ciw.dists.Distribution],
    replicas: int,
    horizon: float,
) -> tuple[float, float]:
    """Mean sojourn of an external row by Little's law, and half of its 99% interval."""
    described = ciw.create_network(
        arrival_distributions=[arrival, None, None, None],
        service_distributions=list(services),
        number_of_servers=PROCESSORS,
        routing=ROUTING,
    )
    means = []
    for seed in range(replicas):
        ciw.seed(seed)
        run = ciw.Simulation(described)
        run.simulate_until_max_time(horizon)
        warm = horizon * 0.1
        spent: dict[int, float] = {}
        entered: dict[int, float] = {}
        left = set()
        for record in run.get_all_records():
            who = record.id_number
            spent[who] = spent.get(who, 0.0) + record.waiting_time + record.service_time
            entered[who] = min(entered.get(who, math.inf), record.arrival_date)
            if record.destination == -1:
                left.add(who)
        times = [spent[who] for who in left if warm < entered[who] < horizon * 0.9]
        means.append(float(np.mean(times)))
    # Student's t for 9 degrees of freedom at 99%.
    half = 3.25 * float(np.std(means, ddof=1)) / math.sqrt(len(means))
    return float(np.mean(means)), half


def rates() -> list[float]:
    ratios = {
        (NAMES[i], NAMES[j]): ROUTING[i][j] for i in range(4) for j in range(4) if ROUTING[i][j]
    }
    solved = arrival_rates(NAMES, {"generate": ENTRY}, ratios)
    return [solved[name] for name in NAMES]


@pytest.mark.filterwarnings("ignore")  # ciw's own
def test_mmk_is_within_the_interval_of_a_jackson_network() -> None:
    mean, half = simulated(
        ciw.dists.Exponential(ENTRY), [ciw.dists.Exponential(mu) for mu in SERVICE], 10, 600.0
    )
    net = network(tuple(NAMES), np.array(rates()), np.array(SERVICE), ENTRY)
    estimate = MMK.latency_s(net, np.array(PROCESSORS))
    assert half < 0.2 * mean
    assert abs(estimate - mean) <= half


def varied(scv: float, mu: float) -> ciw.dists.Distribution:
    """Service times of mean 1 / mu: hyperexponential above an SCV of one, gamma below."""
    if scv < 1:
        return ciw.dists.Gamma(1 / scv, scv / mu)
    p = (1 + math.sqrt((scv - 1) / (scv + 1))) / 2
    return ciw.dists.HyperExponential([2 * p * mu, 2 * (1 - p) * mu], [p, 1 - p])


@pytest.mark.filterwarnings("ignore")  # ciw's own
@pytest.mark.parametrize("scv", [0.5, 2.0])
def test_gigk_is_within_the_interval_where_mmk_is_not(scv: float) -> None:
    services = [varied(scv, mu) for mu in SERVICE]
    mean, half = simulated(ciw.dists.Exponential(ENTRY), services, 10, 600.0)
    net = network(
        tuple(NAMES), np.array(rates()), np.array(SERVICE), ENTRY, np.ones(4), np.full(4, scv)
    )
    processors = np.array(PROCESSORS)
    assert abs(GIGK.latency_s(net, processors) - mean) <= half
    assert abs(MMK.latency_s(net, processors) - mean) > half
