"""What loads of the arena cost at least: by the number of changes, and by what is known of them.

`python -m benchmarks arena_limits:flights_winter`. Baseline is the clairvoyant. All of it is by the
flow of micro-batches, so without chance but for the counts that forecasters see, and every plan
keeps the scenario's share. Rows:

- the clairvoyant with a price on each change, and with 0.4 of the changes of `ds2`: what it found,
  and a bound that no plan with so few changes is below (weak duality), whatever it knows;
- who knows the true rate until an executor that is asked for now serves, or only the rate up to
  now, or what a regression on its season expects of it, each with the margin and the time for which
  executors are kept that are the cheapest in hindsight; and who plans for the quantiles of
  `promise`, at the level that is (`_informed`).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks._informed import Informed, Planned
from penstock.config import Settings
from penstock.forecast.seasonal_regression import SeasonalRegression
from penstock.sim.arena import run_policy
from penstock.sim.clairvoyant import Clairvoyant, Plan
from penstock.sim.scenario import Scenario
from penstock.sim.scenario_file import load_scenario

SCENARIOS = Path(__file__).parent / "arena"
CASES = tuple(sorted(path.stem for path in SCENARIOS.glob("*/*.toml")))
REGRESSION = SeasonalRegression()  # on the present and on earlier seasons
AHEAD = "knows the rate until executors serve"
CHANGE_PRICES = (50.0, 100.0, 200.0, 400.0)  # executor-seconds
OF_DS2 = 0.4
OF_CHANGES = f"{OF_DS2:g} of the changes of ds2"
LATE_TOLERANCE = 0.25  # between prices of a late row; what is found is the dearer by far less
BISECTIONS = 3  # of the price of a change
HIGHEST_CHANGE_PRICE = 1e5


@dataclass(frozen=True)
class Fewest:
    """The cheapest plan found with at most so many changes, and what no such plan is below."""

    most: int
    plan: Plan | None
    at_least: float


def run(case: str = "") -> Iterator[dict[str, Any]]:
    for path in sorted(SCENARIOS.glob("*/*.toml")):
        if case in ("", path.stem):
            yield from limits_of(load_scenario(path))


def limits_of(scenario: Scenario) -> Iterator[dict[str, Any]]:
    """The rows of one scenario."""
    planner = Clairvoyant(scenario)
    free = planner.cheapest()

    def row(what: str, cost: float, conditions: str) -> dict[str, Any]:
        return {
            "name": f"arena_limits/{scenario.name}/{what}",
            "baseline": round(free.cost), "ours": round(cost), "unit": "executor-s",
            "ratio": round(free.cost / cost, 3),
            "conditions": f"{cost / free.cost:.2f} of the clairvoyant, {conditions}",
        }  # fmt: skip

    made = run_policy(scenario, Settings(policy="ds2")).reconfigurations
    most = int(OF_DS2 * made)
    yield row("clairvoyant", free.cost, f"{free.changes} changes; ds2 makes {made}")
    frontier = tuple(priced(planner, free))
    for price, plan in frontier:
        yield row(f"a change costs {price:g}", plan.cost, f"{plan.changes} changes")
    few = with_fewer(planner, free, frontier, most)
    bound = f"no plan with at most {most} changes is below {few.at_least / free.cost:.2f}"
    if few.plan is not None:
        yield row(OF_CHANGES, few.plan.cost, f"{few.plan.changes} changes; {bound}")
    informed = Informed(planner)
    known: tuple[tuple[str, Callable[[], Iterable[Planned]]], ...] = (
        (AHEAD, lambda: informed.with_margins(informed.known_ahead())),
        ("knows the rate up to now", lambda: informed.with_margins(informed.last_value())),
        ("expects its season", lambda: informed.with_margins(informed.forecast(REGRESSION))),
        ("expects what promise does", informed.at_levels),
    )
    for name, planned in known:
        each = list(planned())
        for limit, suffix in ((None, ""), (most, f", {OF_CHANGES}")):
            found = informed.cheapest(each, limit)
            if found is not None:
                told = f"{found.changes} changes; {found.planned}, kept {found.hold} periods; "
                told += f"by quarters of the run {informed.by_parts(found, free)}"
                yield row(name + suffix, found.cost, told)


def priced(planner: Clairvoyant, free: Plan) -> Iterator[tuple[float, Plan]]:
    """The clairvoyant's plans where each change has a price."""
    late_row = free.price
    for price in CHANGE_PRICES:
        plan = planner.priced(price).cheapest(late_row, LATE_TOLERANCE)
        late_row = plan.price
        yield price, plan


def with_fewer(
    planner: Clairvoyant, free: Plan, frontier: tuple[tuple[float, Plan], ...], most: int
) -> Fewest:
    """The clairvoyant with at most so many changes, by the price of one at which it makes them.

    For every price c, the least of cost + c * changes, less c * most, is a lower bound of the cost
    of any plan that keeps the share with at most so many.
    """
    tried = [(0.0, free), *frontier]
    while not any(_fits(planner, plan, most) for _, plan in tried):
        price, plan = tried[-1]
        if 2 * price > HIGHEST_CHANGE_PRICE:
            break
        tried.append((2 * price, planner.priced(2 * price).cheapest(plan.price, LATE_TOLERANCE)))
    for _ in range(BISECTIONS):
        tried.sort(key=lambda each: each[0])
        place = next((n for n, (_, p) in enumerate(tried) if _fits(planner, p, most)), 0)
        if place == 0:
            break
        (low, before), (high, _) = tried[place - 1], tried[place]
        middle = (low + high) / 2
        tried.append((middle, planner.priced(middle).cheapest(before.price, LATE_TOLERANCE)))
    fitting = [plan for _, plan in tried if _fits(planner, plan, most)]
    return Fewest(
        most,
        min(fitting, key=lambda plan: plan.cost, default=None),
        max(plan.at_least - price * most for price, plan in tried),
    )


def _fits(planner: Clairvoyant, plan: Plan, most: int) -> bool:
    return plan.changes <= most and plan.late_rows <= planner.allowed_rows
