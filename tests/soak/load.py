"""A random load of several streams, from a seed: program, runner and verifier make the same."""

import random

from penstock.model.sources import Admission, Streams
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import RateProfile, knots

STREAMS = 6
LATE = 2  # of them, those that join while the program runs
MEAN_PER_S = 60.0  # of a stream
# Left for the last run, which has to have something to read, on a machine however slow.
TAIL_S = 150.0
JOINING_S = (25.0, 45.0)  # after the streams begin
# A stream that is known late would bring rows that the watermark has passed.
JOIN_AHEAD_S = 15.0


def streams(seed: int, length_s: float, mean_per_s: float = MEAN_PER_S) -> dict[str, Generator]:
    """Streams by name, each with a rate that changes every few seconds."""
    moments = random.Random(seed)
    made = {}
    for number in range(STREAMS):
        late = number >= STREAMS - LATE
        begins_s = moments.uniform(*JOINING_S) if late else 0.0
        rate = _profile(moments, mean_per_s, begins_s, length_s + TAIL_S)
        made[f"stream-{number}"] = Generator(
            rate, keys=200, skew=1.1, seed=moments.randrange(2**31), rows=int(rate.rows)
        )
    return made


def joining(made: dict[str, Generator]) -> dict[str, float]:
    """When each late stream joins: some seconds before its first row."""
    late = list(made.items())[STREAMS - LATE :]
    return {name: float(g.rate.arrival_s(0)) - JOIN_AHEAD_S for name, g in late}


def source(made: dict[str, Generator], declared: str, mean_per_s: float = MEAN_PER_S) -> Streams:
    """As a source; PAR places all streams anew each period, so redirections are many."""
    admission = Admission(
        strategy="par", lane_capacity=3 * mean_per_s, lanes_max=3, period="3s", drain_below=None
    )
    return Streams(
        generators=made, stream_column="stream", declared=declared, discover=False,
        admission=admission,
    )  # fmt: skip


def declaration(made: dict[str, Generator]) -> str:
    """The file of streams that are there from the start."""
    return "".join(f'[streams."{name}"]\n' for name in list(made)[: STREAMS - LATE])


def _profile(
    moments: random.Random, mean_per_s: float, begins_s: float, ends_s: float
) -> RateProfile:
    times, rates = [0.0], [0.0 if begins_s else mean_per_s]
    if begins_s:
        times.append(begins_s)
        rates.append(0.0)
    while times[-1] < ends_s:
        times.append(times[-1] + moments.uniform(5.0, 20.0))
        rates.append(mean_per_s * moments.choice([0.2, 0.5, 1.0, 2.0, 3.5]))
    return knots(times, rates)
