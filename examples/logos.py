"""Video logo detection, each operator with processors of its own.

penstock run examples/logos.py:video --apart --master 'local[8]' --policy drs
"""

from penstock import Files, steps
from penstock.workloads.video_logos import video_logos

video = video_logos(
    steps([(20, 4), (20, 12), (20, 4)]),
    Files("out/logos", overwrite=True),
    max_latency="10s",
    frames=400,
    waits_s=(0.1, 0.15, 0.0),
)
