"""What the loop controls: where it looks, where it acts, and what holds for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from penstock.control.ports import Actuator, Measurer
from penstock.model.decision import Limits
from penstock.scaling.forms import FormCosts


@dataclass(frozen=True, kw_only=True)
class Controlled:
    """A topology together or apart, an attached query, or a simulated cluster.

    `edges` joins components by name, upstream first. Processors shared in "time" belong to all
    components at once; shared in "space", each component has its own, `parallelism` to begin with.
    """

    measurer: Measurer
    actuator: Actuator
    limits: Limits
    edges: tuple[tuple[str, str], ...] = ()
    sharing: Literal["time", "space"] = "time"
    parallelism: Mapping[str, int] = field(default_factory=dict)
    route_tasks: Mapping[str, int] = field(default_factory=dict)  # the most, by routed source
    cheaper_forms: tuple[str, ...] = ()  # operators that have one
    # Further forms of operators that answer alike, and what they cost in earlier runs.
    forms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    form_costs: FormCosts = field(default_factory=FormCosts)
