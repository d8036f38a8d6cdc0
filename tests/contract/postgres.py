"""A PostgreSQL server of our own on loopback, for as long as a test needs it."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from brokers.free_port import free_port

ACCOUNT = "postgres"  # initdb refuses to run as root


def missing() -> str | None:
    """Why no server can be started here; None if one can."""
    if _binaries() is None:
        return "no PostgreSQL server is installed (initdb and pg_ctl not found)"
    if os.geteuid() == 0 and not (shutil.which("runuser") and _has_account()):
        return f"initdb refuses root, and there is no account {ACCOUNT!r} to run it as"
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "psycopg is not installed"
    return None


@contextmanager
def server() -> Iterator[str]:
    """The SQLAlchemy URL of a fresh, empty database; its server ends with the block."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-postgresql-"))
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, ACCOUNT)
        data, port = folder / "data", free_port()
        _run("initdb", "-D", data, "-A", "trust", "-U", "penstock", "--no-sync", "-E", "UTF8")
        settings = f"-h 127.0.0.1 -p {port} -k {folder} -c fsync=off"
        _run("pg_ctl", "-D", data, "-o", settings, "-l", folder / "log", "-w", "start")
        try:
            yield f"postgresql+psycopg://penstock@127.0.0.1:{port}/postgres"
        finally:
            _run("pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _binaries() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    if found:
        return found[-1].parent
    return Path(on_path).parent if on_path else None


def _has_account() -> bool:
    import pwd

    return any(account.pw_name == ACCOUNT for account in pwd.getpwall())


def _run(program: str, *arguments: str | Path) -> None:
    folder = _binaries()
    assert folder is not None
    command = [str(folder / program), *map(str, arguments)]
    if os.geteuid() == 0:
        command = ["runuser", "-u", ACCOUNT, "--", *command]
    # The server inherits what is open: a pipe would never reach its end.
    done = subprocess.run(
        command, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{program} failed with {done.returncode}"
