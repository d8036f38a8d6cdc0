"""The route table of the next period, from what the lanes counted in the last one."""

from penstock.model.decision import Decision
from penstock.model.observation import Floats
from penstock.routing.frequent_keys import FrequentKeys
from penstock.routing.ring import Ring
from penstock.routing.route_table import RouteTable, table_of
from penstock.routing.splitting import SplitRule, split_keys

_MOST_NAMED = 3  # hot keys named in the reasons


def decide_routes(
    counted: FrequentKeys, ring: Ring, rule: SplitRule, other_rows: Floats | None = None
) -> Decision[RouteTable]:
    """Split the most frequent keys of the merged sketch; all others stay where the ring has them.

    `other_rows` are the rows of keys that are not split, for each node, if they were counted.
    """
    keys = counted.top(rule.top_k)
    splits = split_keys(keys, ring, rule, other_rows)
    table = table_of(ring, splits)
    if not table.hot:
        reason = f"no key split: none of {keys.total_rows:.0f} rows' keys fills more than one part"
        return Decision(table, (reason,))
    shares = dict(zip(keys.hashes.tolist(), keys.counts / max(keys.total_rows, 1.0), strict=True))
    named = ", ".join(
        f"{key.label!r} ({shares[key.hash]:.1%} of rows) into {len(key.nodes)} parts on "
        f"{len(set(key.nodes))} nodes"
        for key in table.hot[:_MOST_NAMED]
    )
    rest = len(table.hot) - _MOST_NAMED
    return Decision(table, (f"split {named}" + (f" and {rest} more keys" if rest > 0 else ""),))
