"""What would run, without running it: `penstock run --explain`."""

import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from penstock.model.plan import TopologyPlan
from penstock.model.topology import Topology
from penstock.spark.apart.building import Places, build_apart
from penstock.spark.builder import BuiltTopology, Reading, build
from penstock.spark.session import build_session


@dataclass(frozen=True)
class Explanation:
    """The plan of a topology, its output schemas, and what each source is shared by."""

    topology: str
    plan: TopologyPlan
    schemas: dict[str, str]
    shared: tuple[str, ...]
    routes: dict[str, str] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """For a person."""
        lines = [f"topology {self.topology}: {len(self.plan.queries)} query(s)"]
        for query in self.plan.queries:
            lines.append(f"  query {query.name} ({query.output_mode}) -> {', '.join(query.sinks)}")
            for component in query.components:
                members = ", ".join(component.operators) or "(reads its source)"
                key = f" by ({', '.join(component.key)})" if component.key else ""
                lines.append(f"    component {component.name}{key}: {members}")
        lines += [f"  shared by an exchange: {name}" for name in self.shared]
        lines += [f"  route of {name}: {told}" for name, told in self.routes.items()]
        lines += [f"  {name}: {schema}" for name, schema in self.schemas.items()]
        lines += [f"  note: {reason}" for reason in self.plan.reasons]
        return lines


def explain(
    topology: Topology, key_groups: int, log_file: Path | None = None, apart: bool = False
) -> Explanation:
    """Build a topology's queries on a local session and say what they are."""
    session = build_session(
        "penstock-explain", "local[1]", key_groups=key_groups, log_file=log_file
    )
    try:
        built = _built(topology, session, apart)
        shared = {name for query in built.queries for name in query.sharing.shared}
        routes = {s.name: s.route.told() for s in topology.sources if s.route is not None}
        return Explanation(topology.name, built.plan, built.schemas, tuple(sorted(shared)), routes)
    finally:
        session.stop()


def _built(topology: Topology, session: SparkSession, apart: bool) -> BuiltTopology:
    reading = Reading(time.time())
    if not apart:
        return build(topology, session, reading)
    with tempfile.TemporaryDirectory(prefix="penstock-explain-") as folder:
        places = Places(lambda name: Path(folder) / name, lambda name: Path(folder) / "unused")
        return build_apart(topology, session, reading, places).built
