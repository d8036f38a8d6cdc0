"""Where do traffic queues end? The query of Balkesen et al. 2013, s. 1.1, over generated reports.

Windows of 60 panes, as in the paper, but of seconds instead of minutes, so that it ends soon.
"""

from penstock import Files, Route, constant, window_aggregate
from penstock.workloads.traffic import traffic

city = traffic(
    constant(1_000),
    Files("out/traffic", overwrite=True),
    window_aggregate,
    window="6s",
    slide="100ms",
    delay="1s",
    precision_m=1_000,
    rows=20_000,
    route=Route("frequency-aware", key="key", partitions=2),
)

if __name__ == "__main__":
    print(city.run(policy="static", key_groups=2))
