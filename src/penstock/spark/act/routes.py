"""Tasks in use as there are processors: a routed source follows what the loop does."""

from penstock.model.observation import Observation
from penstock.spark.run.together import RunningTopology


class RouteFollower:
    """Tells sources whose route follows how many processors there are, when that changes."""

    def __init__(self, running: RunningTopology) -> None:
        self._running = running
        self._told: dict[str, int] = {}

    def look(self, observation: Observation | None) -> None:
        """After a period of the loop."""
        processors = observation.processors if observation is not None else 0
        for source in self._running.topology.sources:
            if source.route is None or not source.route.follow or processors < 1:
                continue
            tasks = min(source.route.partitions, processors)
            if self._told.get(source.name) != tasks:
                self._running.use_tasks(source.name, tasks)
                self._told[source.name] = tasks
