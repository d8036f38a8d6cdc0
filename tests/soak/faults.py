"""The kinds of faults: how each is injected, and where it can be.

A fault is a function of the leg it happens to, and of its own randomness: several may happen at
once. It returns when it is over: what was stopped goes on, the disk has room again. From then on
recovery is timed.
"""

import errno
import os
import random
import resource
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks._hosts import cut_off
from penstock.spark.checkpoint.durable_files import is_leftover
from soak import forms
from soak.processes import EXECUTOR, RUNNER, WORKER, await_true

if TYPE_CHECKING:
    from soak.leg import Leg

LONGEST_STOP_S = 5.0
REFUSAL_LIMIT_S = 120.0
ROOM_FOR_MEMORY = 8 << 20  # bytes that a worker may still take before there are no more


Inject = Callable[["Leg", random.Random], None]


@dataclass(frozen=True)
class Fault:
    """One kind; `ends` says that the run may end with one sentence, to be started again."""

    how: str
    inject: Inject
    possible: Callable[["Leg"], bool] = lambda leg: True
    ends: bool = False
    slow: bool = False  # the run has to start again for it
    moment: str | None = None  # what the run has to tell of first; else it is `otherwise`
    otherwise: str = ""

    @property
    def alone(self) -> bool:
        """Whether nothing else may happen meanwhile, as there may be no run to happen to."""
        return self.slow or self.ends


def _killed(word: bytes) -> Inject:
    def inject(leg: "Leg", moments: random.Random) -> None:
        leg.send(word, signal.SIGKILL, moments)

    return inject


def _stopped(word: bytes) -> Inject:
    def inject(leg: "Leg", moments: random.Random) -> None:
        pid = leg.send(word, signal.SIGSTOP, moments)
        time.sleep(_stop_s(leg, moments))
        with suppress(ProcessLookupError):  # it may be gone when it is to go on
            os.kill(pid, signal.SIGCONT)

    return inject


def _driver_stopped(leg: "Leg", moments: random.Random) -> None:
    leg.program.signal(signal.SIGSTOP)
    time.sleep(_stop_s(leg, moments))
    leg.program.signal(signal.SIGCONT)


def _stop_s(leg: "Leg", moments: random.Random) -> float:
    return moments.uniform(0.5, leg.longest_stop_s)


def _no_memory(leg: "Leg", moments: random.Random) -> None:
    """The next allocations of a Python worker fail, as they do where there is no memory left."""
    with suppress(ProcessLookupError, FileNotFoundError):
        pid = leg.victim(WORKER, moments, forked=True)
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[0])
        most = pages * resource.getpagesize() + ROOM_FOR_MEMORY
        resource.prlimit(pid, resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))


def _full_disk(leg: "Leg", moments: random.Random) -> None:
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
        time.sleep(_stop_s(leg, moments) / 2)
    finally:
        filler.unlink(missing_ok=True)


def _slow_disk(leg: "Leg", moments: random.Random) -> None:
    file = leg.directory.parent / "sync"
    file.write_text(f"{moments.uniform(0.02, 0.3):.3f}", encoding="ascii")
    time.sleep(_stop_s(leg, moments))
    file.unlink(missing_ok=True)  # another one may have ended it


def _clock(leg: "Leg", moments: random.Random) -> None:
    """One step, which stays until the next one: far where rows are written, else by seconds."""
    far_s = 3600.0 if leg.form in forms.WRITTEN else 3.0
    file = leg.directory.parent / "clock"
    file.write_text(f"{moments.choice([-1.0, 1.0]) * moments.uniform(0.5, 1.0) * far_s:.3f}")


def _driver(leg: "Leg", _: random.Random) -> None:
    leg.kill_driver(again=True)


def _driver_soon(leg: "Leg", moments: random.Random) -> None:
    time.sleep(moments.uniform(0.0, 1.0))
    _driver(leg, moments)


def _damage(leg: "Leg", moments: random.Random) -> None:
    """A byte of a file of ours: the next start names the file, or goes on as if nothing were."""
    leg.kill_driver()
    ours = leg.directory / "checkpoint/penstock"
    files = [p for p in sorted(ours.rglob("*")) if p.is_file() and p.stat().st_size > 0]
    file = moments.choice([p for p in files if not is_leftover(p.name)])
    before = file.read_bytes()
    place = moments.randrange(len(before))
    other = bytes([before[place] ^ moments.randrange(1, 256)])
    file.write_bytes(before[:place] + other + before[place + 1 :])
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


def _broker_killed(leg: "Leg", _: random.Random) -> None:
    """It keeps what it was sent."""
    with leg.writing_paused():
        leg.broker.kill()
        leg.broker.start()


def _broker_stopped(leg: "Leg", moments: random.Random) -> None:
    """It answers nobody for a while, and keeps its connections."""
    with leg.writing_paused():
        leg.broker.signal(signal.SIGSTOP)
        time.sleep(_stop_s(leg, moments))
        leg.broker.signal(signal.SIGCONT)


def _cut_off(leg: "Leg", moments: random.Random) -> None:
    with cut_off(moments.randrange(forms.HOSTS)):
        time.sleep(_stop_s(leg, moments))


def _on_hosts(leg: "Leg") -> bool:
    return leg.form == forms.ON_HOSTS


def _restless(leg: "Leg") -> bool:
    return leg.form in forms.GENERATED and leg.form != "apart"


def _broker(leg: "Leg") -> bool:
    return leg.broker is not None


FAULTS: dict[str, Fault] = {
    "executor killed": Fault("SIGKILL", _killed(EXECUTOR)),
    "source runner killed": Fault("SIGKILL", _killed(RUNNER)),
    "Python worker killed": Fault("SIGKILL", _killed(WORKER)),
    "Python worker without memory": Fault("its limit of memory set to what it has", _no_memory),
    "loop ended": Fault(
        "an exception in its thread", lambda leg, _: leg.program.signal(signal.SIGUSR1)
    ),
    "page killed": Fault("SIGKILL, and another started", lambda leg, _: leg.new_page()),
    "executor hangs": Fault("SIGSTOP, SIGCONT", _stopped(EXECUTOR)),
    "source runner hangs": Fault("SIGSTOP, SIGCONT", _stopped(RUNNER)),
    "driver hangs": Fault("SIGSTOP, SIGCONT", _driver_stopped),
    "slow disk": Fault("each sync of a Python process takes 20 to 300 ms longer", _slow_disk),
    "full disk": Fault(
        "checkpoint, output and history on a small tmpfs that is filled", _full_disk,
        possible=lambda leg: leg.small_disk, ends=True,
    ),
    "clock step": Fault("time.time of every Python process", _clock),
    "broker killed": Fault("SIGKILL, and started again", _broker_killed, _broker),
    "broker hangs": Fault("SIGSTOP, SIGCONT", _broker_stopped, _broker),
    "driver killed": Fault("SIGKILL; its cluster goes with it", _driver, slow=True),
    "driver killed in a scale-in": Fault(
        "SIGKILL within a second of the first executor drained", _driver_soon, _restless,
        slow=True, moment="scale-in", otherwise="driver killed",
    ),
    "driver killed in a move": Fault(
        "SIGKILL within a second of key groups moving", _driver_soon, _restless,
        slow=True, moment="move", otherwise="driver killed",
    ),
    "damaged byte": Fault(
        "one byte of a file below checkpoint/penstock, while the driver is down", _damage, slow=True
    ),
    "host cut off": Fault(
        "the link of a network namespace set down: driver and another host cannot reach it",
        _cut_off, _on_hosts,
    ),
}  # fmt: skip
