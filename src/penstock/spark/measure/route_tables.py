"""Tables of routes as decisions: what a source's runner changed, and why."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from penstock.model.decision import RoomDecision
from penstock.model.observation import RouteObservation
from penstock.spark.routes.exchange import RouteExchange


class RouteTableReporter:
    """Reports each table that came into use, once, if its maker gave a reason for it."""

    def __init__(self, folder: Path, methods: Mapping[str, str]) -> None:
        """`methods` are the names of the routing methods by source."""
        self._folder, self._methods = folder, methods
        self._in_use: dict[str, str] = {}

    def take(self, routes: Iterable[RouteObservation], now_s: float) -> tuple[RoomDecision, ...]:
        """What was decided between the batches of the last call and of this one."""
        return tuple(
            decision for route in routes if (decision := self._changed(route, now_s)) is not None
        )

    def _changed(self, route: RouteObservation, now_s: float) -> RoomDecision | None:
        source, version = route.source, route.table
        if not version or self._in_use.get(source) == version:
            return None
        self._in_use[source] = version
        table = RouteExchange(self._folder / source).read_table(version)
        if table is None or not table.get("reasons"):
            return None
        return RoomDecision(
            now_s, "routing", self._methods.get(source, "route"),
            f"{source}: routes by table {version.partition('-')[0].lstrip('0') or '0'}",
            {"tasks": float(table["tasks"]), "load ratio": route.load_ratio},
            tuple(table["reasons"]),
        )  # fmt: skip
