"""`penstock dashboard`: the web page over a history, live or old; also beside a run."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.settings import HISTORY_HELP, history_place
from penstock.errors import InvalidInput

if TYPE_CHECKING:
    from penstock.dashboard.handler import Hosted
    from penstock.spark.host.host import Host
    from penstock.spark.run.elastic import ElasticRun

DEFAULT_PORT = 8686
LEAST_TOKEN = 8  # characters; shorter ones can be guessed

PageFlag = typer.Option("--dashboard", help="Also show the run on a web page on 127.0.0.1.")
PortOption = typer.Option(
    "--port", min=0, max=65_535, help="Port of the page on 127.0.0.1; 0 picks a free one."
)
TokenOption = typer.Option(
    "--token", help="Password for acting from the page. Default: a random one, printed at start."
)
PrivateFlag = typer.Option("--private", help="Reading the page needs its password too.")


def dashboard(
    history: Annotated[str | None, typer.Option("--history", help=HISTORY_HELP)] = None,
    port: Annotated[int, PortOption] = DEFAULT_PORT,
    token: Annotated[
        str | None,
        typer.Option(
            "--token", help="Password for reading the page. Default: none, on this machine only."
        ),
    ] = None,
    grafana: Annotated[
        bool, typer.Option("--grafana", help="Print the Grafana dashboard file and exit.")
    ] = False,
    alerts: Annotated[
        bool, typer.Option("--alerts", help="Print alert rules for Prometheus and exit.")
    ] = False,
) -> None:
    """Show a history on a web page on 127.0.0.1 until Ctrl-C; nothing is changed."""
    import threading

    if grafana and alerts:
        raise InvalidInput("--grafana and --alerts each print a file; give one of them.")
    if grafana or alerts:
        from importlib.resources import files

        name = "grafana.json" if grafana else "alerts.yaml"
        print((files("penstock.dashboard") / name).read_text(encoding="utf-8"), end="")
        return
    with served(history_place(history), port, checked_token(token)):
        threading.Event().wait()


def checked_token(token: str | None) -> str | None:
    """A token that fits into an address and a cookie, and cannot be guessed."""
    if token is None or re.fullmatch(rf"[A-Za-z0-9_-]{{{LEAST_TOKEN},200}}", token):
        return token
    raise InvalidInput(
        f"--token must be at least {LEAST_TOKEN} letters, digits, '-' or '_'; it is not shown here."
    )


class Controls:
    """What a person may do to a run from its page, once there is one."""

    def __init__(self, token: str | None) -> None:
        import secrets

        self.token = checked_token(token) or secrets.token_urlsafe(24)
        self.run: ElasticRun | None = None

    def acts(self) -> Mapping[str, Any]:
        """By name, as the page asks for them."""
        return {"advice-only": self._advise_only}

    def _advise_only(self, wanted: Mapping[str, Any]) -> Mapping[str, Any]:
        on = wanted.get("on")
        if not isinstance(on, bool):
            raise InvalidInput(f"on is {on!r}; it must be true or false.")
        if self.run is None:
            raise InvalidInput("the run has not begun yet.")
        self.run.advise_only(on)
        return {"on": on}


@contextmanager
def beside(
    shown: bool, where: str, port: int, token: str | None, private: bool = False
) -> Iterator[Controls]:
    """The page of a run that is about to begin, if it is wanted, from before its first period."""
    controls = Controls(token)
    if not shown:
        yield controls
        return
    from penstock.control.history.store import HistoryStore

    HistoryStore(where).close()  # made now, so that the page has something to open
    with served(where, port, controls=controls, private=private):
        yield controls


@contextmanager
def beside_host(host: Host, where: str, port: int, token: str | None) -> Iterator[str]:
    """The page of a host: its topologies by community. Reading it needs the password."""
    from penstock.control.history.store import HistoryStore

    HistoryStore(where).close()  # made now, so that the page has something to open
    controls = HostControls(token, host)
    with served(where, port, controls=controls, private=True, hosted=host.by_community) as url:
        yield url


class HostControls:
    """What a person may do to the topologies of a host from its page."""

    def __init__(self, token: str | None, host: Host) -> None:
        self.token, self._host = Controls(token).token, host

    def acts(self) -> Mapping[str, Any]:
        """By name, as the page asks for them."""
        return {do: partial(self._do, do) for do in ("stop", "restart")}

    def _do(self, do: str, wanted: Mapping[str, Any]) -> Mapping[str, Any]:
        return self._host.handle({"do": do, "name": wanted.get("name")})


@contextmanager
def served(
    where: str, port: int, token: str | None = None,
    controls: Controls | HostControls | None = None, private: bool = False,
    hosted: Hosted | None = None,
) -> Iterator[str]:  # fmt: skip
    """Serve a history during a `with` block; its address goes to stderr."""
    from penstock.control.history.store import HistoryStore
    from penstock.dashboard.server import Dashboard

    private, acts = private or token is not None, None
    if controls is not None:
        token, acts = controls.token, controls.acts()
    with ExitStack() as things:
        store = things.enter_context(HistoryStore(where, create=False))
        page = things.enter_context(Dashboard(store, port, token, acts, private, hosted))
        print(f"page: {page.url}", file=sys.stderr, flush=True)
        yield page.url
