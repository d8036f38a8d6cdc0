"""The kinds of faults: how each is injected, and where it can be.

A fault is a function of the leg it happens to. It returns when it is over: what was stopped goes
on, the disk has room again. From then on recovery is timed.
"""

import errno
import os
import resource
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.spark.checkpoint.durable_files import is_leftover
from soak import forms
from soak.processes import EXECUTOR, RUNNER, WORKER, await_true

if TYPE_CHECKING:
    from soak.leg import Leg

LONGEST_STOP_S = 8.0
MOMENT_LIMIT_S = 60.0
REFUSAL_LIMIT_S = 120.0
ROOM_FOR_MEMORY = 8 << 20  # bytes that a worker may still take before there are no more


@dataclass(frozen=True)
class Fault:
    """One kind; `ends` says that the run may end with one sentence, to be started again."""

    how: str
    inject: Callable[["Leg"], None]
    possible: Callable[["Leg"], bool] = lambda leg: True
    ends: bool = False
    slow: bool = False  # something has to start for it, so it comes once a leg


def _killed(word: bytes) -> Callable[["Leg"], None]:
    return lambda leg: os.kill(leg.victim(word), signal.SIGKILL)


def _stopped(word: bytes | None) -> Callable[["Leg"], None]:
    return lambda leg: hang(leg, leg.program.process.pid if word is None else leg.victim(word))


def hang(leg: "Leg", pid: int) -> None:
    """Let a process hang for a while; it may be gone when it is to go on."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
        time.sleep(leg.moments.uniform(0.5, leg.longest_stop_s))
        os.kill(pid, signal.SIGCONT)


def _no_memory(leg: "Leg") -> None:
    """The next allocations of a Python worker fail, as they do where there is no memory left."""
    with suppress(ProcessLookupError, FileNotFoundError):
        pid = leg.victim(WORKER)
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[0])
        most = pages * resource.getpagesize() + ROOM_FOR_MEMORY
        resource.prlimit(pid, resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))


def _full_disk(leg: "Leg") -> None:
    filler = leg.directory / "filler"
    try:
        with filler.open("wb", buffering=0) as stream:
            block = bytes(1 << 20)
            while block:
                try:
                    stream.write(block)
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    block = block[: len(block) // 16]
        time.sleep(leg.moments.uniform(0.5, leg.longest_stop_s / 2))
    finally:
        filler.unlink(missing_ok=True)


def _slow_disk(leg: "Leg") -> None:
    file = leg.directory.parent / "sync"
    file.write_text(f"{leg.moments.uniform(0.02, 0.3):.3f}", encoding="ascii")
    time.sleep(leg.moments.uniform(0.5, leg.longest_stop_s))
    file.unlink()


def _clock(leg: "Leg") -> None:
    """One step, which stays until the next one: far where rows are written, else by seconds."""
    far_s = 3600.0 if leg.form in forms.WRITTEN else 3.0
    file = leg.directory.parent / "clock"
    file.write_text(
        f"{leg.moments.choice([-1.0, 1.0]) * leg.moments.uniform(0.5, 1.0) * far_s:.3f}"
    )


def _driver(leg: "Leg") -> None:
    leg.kill_driver()
    leg.start()


def _driver_at(word: str) -> Callable[["Leg"], None]:
    """When it tells of something, or after a while without that."""

    def inject(leg: "Leg") -> None:
        seen = leg.program.told[word]
        with suppress(TimeoutError):
            await_true(word, lambda: leg.program.told[word] > seen, MOMENT_LIMIT_S, 0.02)
            leg.met[word] += 1
        time.sleep(leg.moments.uniform(0.0, 1.0))
        _driver(leg)

    return inject


def _damage(leg: "Leg") -> None:
    """A byte of a file of ours: the next start names the file, or goes on as if nothing were."""
    leg.kill_driver()
    ours = leg.directory / "checkpoint/penstock"
    files = [p for p in sorted(ours.rglob("*")) if p.is_file() and p.stat().st_size > 0]
    file = leg.moments.choice([p for p in files if not is_leftover(p.name)])
    before = file.read_bytes()
    place = leg.moments.randrange(len(before))
    file.write_bytes(
        before[:place]
        + bytes([before[place] ^ leg.moments.randrange(1, 256)])
        + before[place + 1 :]
    )
    leg.start()
    seen = leg.program
    await_true("a batch or a refusal", lambda: not seen.alive or seen.batches > 1, REFUSAL_LIMIT_S)
    if seen.alive:
        leg.met["harmless"] += 1
        return
    leg.program.end()
    if file.name not in leg.program.said():
        raise RuntimeError(f"{file} was damaged, and what was said is: {leg.program.said()}")
    leg.met["refused"] += 1
    file.write_bytes(before)
    leg.start()


def _written(leg: "Leg") -> bool:
    return leg.form in forms.WRITTEN


def _restless(leg: "Leg") -> bool:
    return leg.form in ("fused", "plain", "windowed", "joined")


def _broker(leg: "Leg") -> bool:
    return leg.broker is not None


FAULTS: dict[str, Fault] = {
    "executor killed": Fault("SIGKILL", _killed(EXECUTOR)),
    "source runner killed": Fault("SIGKILL", _killed(RUNNER)),
    "Python worker killed": Fault("SIGKILL", _killed(WORKER)),
    "Python worker without memory": Fault("its limit of memory set to what it has", _no_memory),
    "loop ended": Fault(
        "an exception in its thread", lambda leg: leg.program.signal(signal.SIGUSR1)
    ),
    "page killed": Fault("SIGKILL, and another started", lambda leg: leg.new_page(), slow=True),
    "executor hangs": Fault("SIGSTOP, SIGCONT", _stopped(EXECUTOR)),
    "source runner hangs": Fault("SIGSTOP, SIGCONT", _stopped(RUNNER)),
    "driver hangs": Fault("SIGSTOP, SIGCONT", _stopped(None)),
    "slow disk": Fault("each sync of a Python process takes 20 to 300 ms longer", _slow_disk),
    "full disk": Fault(
        "checkpoint, output and history on a small tmpfs that is filled", _full_disk,
        possible=lambda leg: leg.small_disk, ends=True,
    ),
    "clock step": Fault("time.time of every Python process", _clock),
    "broker killed": Fault("SIGKILL, and started again", lambda leg: leg.restart_broker(), _broker),
    "broker hangs": Fault("SIGSTOP, SIGCONT", lambda leg: leg.hang_broker(), _broker),
    "driver killed": Fault("SIGKILL; its cluster goes with it", _driver, slow=True),
    "driver killed in a scale-in": Fault(
        "SIGKILL within a second of the first executor drained", _driver_at("scale-in"),
        _restless, slow=True,
    ),
    "driver killed in a move": Fault(
        "SIGKILL within a second of key groups moving", _driver_at("move"), _restless, slow=True
    ),
    "damaged byte": Fault(
        "one byte of a file below checkpoint/penstock, while the driver is down", _damage, slow=True
    ),
    # A network cut between hosts needs hosts: network namespaces with a worker each.
}  # fmt: skip
