"""Penstock: elastic stream processing on Apache Spark.

The names below are imported when they are first used, so that `penstock --help` stays quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.api import Topology as Topology
    from penstock.api import attach as attach
    from penstock.errors import InvalidInput as InvalidInput
    from penstock.errors import PenstockError as PenstockError
    from penstock.model.aggregates import UserAggregate as UserAggregate
    from penstock.model.channels import FromChannel as FromChannel
    from penstock.model.route import Route as Route
    from penstock.model.sinks import Console as Console
    from penstock.model.sinks import Files as Files
    from penstock.model.sinks import ForeachBatch as ForeachBatch
    from penstock.model.sinks import Memory as Memory
    from penstock.model.sinks import ToChannel as ToChannel
    from penstock.model.sources import Admission as Admission
    from penstock.model.sources import Streams as Streams
    from penstock.spark.channels.publishing import ChannelWriter as ChannelWriter
    from penstock.spark.host.client import connect as connect
    from penstock.spark.routes.costed import costed as costed
    from penstock.spark.run.user_session import session as session
    from penstock.spark.run.user_session import session_settings as session_settings
    from penstock.spark.sources.dead_letters import read_letters as read_letters
    from penstock.spark.windows.operator import window_aggregate as window_aggregate
    from penstock.workloads.generator import Generator as Generator
    from penstock.workloads.profiles import RateProfile as RateProfile
    from penstock.workloads.profiles import bursts as bursts
    from penstock.workloads.profiles import constant as constant
    from penstock.workloads.profiles import day as day
    from penstock.workloads.profiles import steps as steps
    from penstock.workloads.profiles import trend as trend

_HOMES = {
    "penstock.api": ("Topology", "attach"),
    "penstock.errors": ("InvalidInput", "PenstockError"),
    "penstock.model.route": ("Route",),
    "penstock.model.channels": ("FromChannel",),
    "penstock.model.sinks": ("Console", "Files", "ForeachBatch", "Memory", "ToChannel"),
    "penstock.spark.channels.publishing": ("ChannelWriter",),
    "penstock.spark.host.client": ("connect",),
    "penstock.spark.routes.costed": ("costed",),
    "penstock.model.sources": ("Admission", "Streams"),
    "penstock.spark.run.user_session": ("session", "session_settings"),
    "penstock.spark.sources.dead_letters": ("read_letters",),
    "penstock.spark.windows.operator": ("window_aggregate",),
    "penstock.model.aggregates": ("UserAggregate",),
    "penstock.workloads.generator": ("Generator",),
    "penstock.workloads.profiles": ("RateProfile", "bursts", "constant", "day", "steps", "trend"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'penstock' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)
