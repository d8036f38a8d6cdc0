"""Methods of routing by name."""

from penstock.model.route import METHODS, Route
from penstock.spark.routes.by_cost import ByCost
from penstock.spark.routes.by_frequency import ByFrequency
from penstock.spark.routes.by_panes import ByPanes
from penstock.spark.routes.fixed import Fixed
from penstock.spark.routes.method import Method

_SPECIAL: dict[str, Method] = {
    "frequency-aware": ByFrequency(),
    "osg": ByCost(),
    "panes": ByPanes(rate_aware=False),
    "rate-aware-panes": ByPanes(rate_aware=True),
}
_ALL: dict[str, Method] = {name: _SPECIAL.get(name) or Fixed(name) for name in METHODS}


def method_of(route: Route) -> Method:
    """The method a route names."""
    return _ALL[route.method]
