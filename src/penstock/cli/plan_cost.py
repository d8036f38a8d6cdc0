"""What `penstock plan --price` prints of cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.model.observation import Observation
    from penstock.sim.pricing import Bill

WEEK_S = 7 * 86_400.0


def cost_document(
    price: float | None, days: float, bills: dict[str, Bill], periods: list[Observation]
) -> dict[str, Any]:
    """The bills of all candidates, as data; nothing where no price was given."""
    if price is None:
        return {}
    recorded_s = sum(one.period_s for one in periods)
    return {"cost": {
        "price_per_executor_hour": price, "days": days, "recorded_s": recorded_s, "bills": bills,
    }}  # fmt: skip


def range_text(found: Bill) -> str:
    """A price as a range; one number where it does not vary.

    >>> from penstock.sim.pricing import Bill
    >>> range_text(Bill(100, 98.6, 104, 120.2)), range_text(Bill(100, 50, 50, 50))
    ('99 to 120', '50')
    """
    low, high = (f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
                 for value in (found.low, found.high))  # fmt: skip
    return low if low == high else f"{low} to {high}"


def cost_line(cost: dict[str, Any], found: Bill) -> str:
    """What is advised would cost so much, and what that rests on."""
    price, span = cost["price_per_executor_hour"], _span(cost["recorded_s"])
    return (
        f"cost: {range_text(found)} for {cost['days']:g} days at {price:g} an executor-hour, "
        f"if they are like the recorded {span}"
        + ("" if cost["recorded_s"] >= WEEK_S else "; nights and weekends count once recorded")
    )


def _span(seconds: float) -> str:
    for size, name in ((86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} seconds"
