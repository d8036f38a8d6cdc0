"""The program `penstock host`: one session, many topologies, until it is told to end."""

import signal
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path

from penstock.config import Settings
from penstock.errors import InvalidInput, Unavailable, documented
from penstock.spark.host.host import Host
from penstock.spark.host.messages import Listen, MessageServer, read_address
from penstock.spark.host.on_spark import SparkRunner
from penstock.spark.host.registry import Registry
from penstock.spark.run.before_start import check_master
from penstock.spark.run.place import Place, open_session


@dataclass(frozen=True)
class Bounds:
    """What the code of one topology may take before it is ended."""

    batch_s: float = 600.0
    worker_memory_mb: int = 4096  # of address space, of each Python worker


@documented("host")
def run_host(
    settings: Settings,
    master: str,
    directory: Path,
    ready: Callable[[str], None],
    listen: Listen | None = None,
    bounds: Bounds = Bounds(),
    beside: Callable[[Host], AbstractContextManager[object]] = nullcontext,
) -> None:
    """Run until SIGTERM or Ctrl-C; what was submitted comes back with the next start.

    `beside` is entered once the host runs, and left when it ends: its page.
    """
    if settings.dry_run:
        raise InvalidInput(
            "dry-run is for one topology: a host divides its cluster whatever the loops advise; "
            "try the topology with `penstock run --dry-run`."
        )
    check_master(master)
    try:
        known = read_address()
    except Unavailable:
        pass
    else:
        raise Unavailable(
            f"a host runs already (process {known.pid}, in {known.directory}); end that one first."
        )
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    with ExitStack() as resources:
        registry = resources.enter_context(Registry(directory))
        place = Place(master, log_file=registry.folder / "spark.log")
        cores = 1 if master.startswith("local") else settings.slots  # which Spark divides it by
        session = open_session(
            "penstock-host", settings, place, registry.folder / "host", resources, fair=True,
            more={"spark.executor.pyspark.memory": f"{bounds.worker_memory_mb * cores}m"},
        )  # fmt: skip
        runner = SparkRunner(session, settings, registry.folder / "costs", bounds.batch_s)
        resources.callback(runner.close)
        host = Host(registry, runner)
        resources.callback(host.end)
        host.come_back()
        server = MessageServer(host.handle, registry.folder, host.caller, listen)
        resources.enter_context(server)
        resources.enter_context(beside(host))
        ready(f"The host runs on {master} in {registry.folder}; submit with `penstock submit`.")
        if listen is not None:
            ready(f"Members of communities reach it at {listen.host}:{server.ports[1]}.")
        try:
            while not over.wait(1.0):
                pass
        except KeyboardInterrupt:
            over.set()
