"""One operator whose rows are dealt out in turn to servers that each have their own queue.

That is what shuffle grouping does: even in numbers, blind to what a row costs and to what waits.
New servers get only new rows; the queue of one taken away is dealt out to the others.
"""

from dataclasses import replace

import numpy as np

from penstock.sim.jobs import NO_JOBS, Jobs, merged
from penstock.sim.scenario import OperatorSpec, Scenario
from penstock.sim.station import Station
from penstock.sim.tally import OperatorTally


def station_of(spec: OperatorSpec, scenario: Scenario, rng: np.random.Generator) -> Station:
    """The station of an operator, by how its rows find a server."""
    kind = Station if spec.dispatch == "shared" else ShuffledStation
    return kind(spec, scenario, rng)


class ShuffledStation(Station):
    """Single servers in a row, dealt to round robin."""

    def __init__(self, spec: OperatorSpec, scenario: Scenario, rng: np.random.Generator) -> None:
        super().__init__(spec, scenario, rng)
        self._scenario = scenario
        self._lanes = [self._lane(0.0) for _ in range(spec.processors)]
        self._leaving = list[Station]()  # taken away while they served a row
        self._turn = 0

    @property
    def servers(self) -> int:
        """How many servers it has."""
        return len(self._lanes)

    @property
    def queued_rows(self) -> int:
        """Rows that arrived and wait in any queue."""
        return sum(lane.queued_rows for lane in self._lanes)

    def resize(self, servers: int, now_s: float) -> float:
        """Change the number of servers; returns when the last of those removed has finished."""
        if servers == self.servers:
            return now_s
        gone, self._lanes = self._lanes[servers:], self._lanes[:servers]
        self._lanes += [self._lane(now_s) for _ in range(servers - self.servers)]
        for lane in gone:
            self._deal_again(lane)
        self._leaving += gone
        for lane in self._lanes:
            lane.pause(now_s)
        return now_s + max((lane.residual_s(now_s) for lane in gone), default=0.0)

    def serve(self, from_s: float, until_s: float, tally: OperatorTally) -> Jobs:
        """Serve until a moment; the jobs that were started, with what they emit when they end."""
        here = self.arrived(until_s)
        places = (self._turn + np.arange(len(here))) % self.servers
        self._turn = (self._turn + len(here)) % self.servers
        for place, lane in enumerate(self._lanes):
            lane.stretch = self.stretch
            lane.put(here.where(places == place))
        self._leaving = [lane for lane in self._leaving if lane.residual_s(from_s) > 0]
        return merged(
            [lane.serve(from_s, until_s, tally) for lane in [*self._lanes, *self._leaving]]
        )

    def _lane(self, now_s: float) -> Station:
        lane = Station(replace(self.spec, processors=1), self._scenario, self.rng)
        lane.free_s = [now_s]
        return lane

    def _deal_again(self, lane: Station) -> None:
        """Rows that waited for a server taken away: they were counted as offered already."""
        for number in range(len(lane.queue)):
            target = self._lanes[(self._turn + number) % self.servers]
            one = slice(number, number + 1)
            target.queue = _appended(target.queue, lane.queue, one)
            target.services_s = np.append(target.services_s, lane.services_s[one])
        self._turn = (self._turn + len(lane.queue)) % self.servers
        lane.queue, lane.services_s = NO_JOBS, np.empty(0)


def _appended(queue: Jobs, other: Jobs, part: slice) -> Jobs:
    return Jobs(
        np.append(queue.at_s, other.at_s[part]),
        np.append(queue.origin_s, other.origin_s[part]),
        np.append(queue.rows, other.rows[part]),
    )
