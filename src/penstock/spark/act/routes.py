"""Tasks in use as there are processors: a routed source follows what the loop does."""

from penstock.model.observation import Observation
from penstock.spark.run.together import RunningTopology


class RouteFollower:
    """Routes rows to as many tasks as there are processors, where a route follows them."""

    def __init__(self, running: RunningTopology) -> None:
        self._running = running
        self._ordered: dict[str, int] = {}

    def look(self, observation: Observation | None) -> None:
        """After a period of the loop."""
        processors = observation.processors if observation is not None else 0
        for source in self._running.topology.sources:
            if source.route is None or not source.route.follow or processors < 1:
                continue
            tasks = min(source.route.partitions, processors)
            if self._ordered.get(source.name) != tasks:
                self._running.use_tasks(source.name, tasks)
                self._ordered[source.name] = tasks
