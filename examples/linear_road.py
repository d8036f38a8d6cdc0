"""Linear road (Guo and Zhou 2017, s. 6.3): one gadget, and a network of three.

penstock run examples/linear_road.py:road --explain --plan examples/linear_road_plan.json
"""

from penstock import Files, Generator, Topology, steps
from penstock.workloads.linear_road import Expressway, linear_road, road_network

REPORTS = Generator(steps([(10, 500), (10, 2_000)]), keys=2_000, rows=20_000)

road = linear_road(
    REPORTS,
    Files("out/tolls", overwrite=True),
    Files("out/accidents", overwrite=True),
    Files("out/traffic", overwrite=True),
    kind=Topology,
)
network = road_network(
    [
        Expressway("north", "a", "b", REPORTS),
        Expressway("east", "b", "c", REPORTS),
        Expressway("south", "b", "d", REPORTS),
    ],
    lambda name: Files(f"out/{name}", overwrite=True),
    kind=Topology,
)
