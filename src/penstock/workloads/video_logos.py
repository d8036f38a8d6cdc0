"""Video logo detection (Fu et al. 2017, s. V-A): frames -> extract -> match -> aggregate.

Frames are made up, features are really computed and matched. Waiting may be added to each operator
to stand for hardware that a machine has not: it keeps a processor busy, but no core.
"""

from typing import Any

from penstock.model.sinks import Sink
from penstock.model.topology import Topology
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import RateProfile
from penstock.workloads.video_frames import Video
from penstock.workloads.video_steps import EXTRACTED, MATCHED, SEEN, Aggregate, Extract, Match
from penstock.workloads.waiting import Waiting

OPERATORS = ("extract", "match", "aggregate")


def video_logos(
    rate: RateProfile,
    logos: Sink,
    *,
    max_latency: str = "5s",
    frames: int | None = None,
    max_rows: int | None = None,
    waits_s: tuple[float, float, float] = (0.0, 0.0, 0.0),
    seed: int = 7,
) -> Topology:
    """The topology; each operator is a component of its own where it runs apart."""
    video = Topology("video-logos", max_latency=max_latency)
    stream = Generator(rate, keys=1, seed=seed, rows=frames, lanes=2, max_rows=max_rows)
    video.source("frames", stream)
    extract_wait, match_wait, aggregate_wait = (Waiting(s, n) for n, s in enumerate(waits_s))

    @video.operator("frames", separate=True)
    def extract(frames: Any) -> Any:
        return frames.mapInArrow(Extract(Video(seed), extract_wait), EXTRACTED)

    @video.operator("extract", separate=True)
    def match(extract: Any) -> Any:
        return extract.mapInArrow(Match(match_wait), MATCHED)

    @video.operator("match", separate=True)
    def aggregate(match: Any) -> Any:
        return match.mapInArrow(Aggregate(aggregate_wait), SEEN)

    video.sink("logos", "aggregate", logos)
    return video


def shown(frames: int, seed: int = 7) -> set[tuple[int, int]]:
    """Which logos the first frames really show, as (frame, logo)."""
    video = Video(seed)
    return {(frame, logo) for frame in range(frames) for logo, _, _ in video.logos_of(frame)}
