"""One leg of a soak: a form of topology under random faults, from its start to the verdict.

Faults come in volleys, each fault at its own moment and none waiting for what another did to the
run. Those that end the run come alone, as there is nothing then that others could happen to.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks._hosts import cluster_of_hosts
from penstock.control.history.store import HistoryStore
from penstock.errors import PenstockError
from penstock.spark.run.place import EMBEDDED
from penstock.spark.sources.program import StreamsProgram
from soak import forms, load
from soak.faults import FAULTS, LONGEST_STOP_S
from soak.processes import EXECUTOR, Page, Soaked, await_true, note_states
from soak.verify import Verdict, verify
from soak.written import Writing, writing
from spark.killed_program import processes_below

START_LIMIT_S, RECOVERY_LIMIT_S = 600.0, 300.0
FINISH_LIMIT_S = 900.0
GONE_LIMIT_S = 120.0
DISK_MB = 384
VOLLEY = (4, 8)  # faults at least, where there are as many left in a round, and at most
NONE_YET: Mapping[str, int] = {}
SLOW_A_LEG = 1  # kinds for which the run has to start again, besides the kill at the end
MOMENT_S, LAST_MOMENT_S = 4.0, 20.0  # waited for a moment between two volleys, and after the last


@dataclass(frozen=True)
class Injected:
    """A fault as it went."""

    kind: str
    at_s: float  # since the leg began
    recovery_s: float
    restarted: bool = False  # the run ended with one sentence and was started again

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@contextmanager
def small_disk(directory: Path) -> Iterator[bool]:
    """A directory on a disk of its own that can be filled; False where none can be mounted."""
    directory.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=700", "soak", str(directory)]
    mounted = False
    if os.geteuid() == 0:
        with suppress(FileNotFoundError):
            mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            kept = directory.with_name("kept")  # for whoever asks what went wrong
            shutil.copytree(directory, kept, symlinks=True, ignore_dangling_symlinks=True)
            subprocess.run(["umount", "--lazy", str(directory)], check=True)
            directory.rmdir()
            kept.rename(directory)


class Leg:
    """One directory, one form, one seed."""

    def __init__(
        self, room: Path, form: str, seed: int, length_s: float,
        report: Callable[[str], None] = print, batches: int = 2, volley: tuple[int, int] = VOLLEY,
        longest_stop_s: float = LONGEST_STOP_S, mean_per_s: float = load.MEAN_PER_S,
    ) -> None:  # fmt: skip
        self.room, self.directory = room, room / "disk"
        self.form, self.seed, self.length_s = form, seed, length_s
        self._mean_per_s, self._master = mean_per_s, EMBEDDED
        self.moments = random.Random(seed + 1)
        self.longest_stop_s = longest_stop_s
        self.small_disk = False
        self.broker: Any = None
        self.injected: list[Injected] = []
        self.met: Counter[str] = Counter()  # moments that were waited for, damage that was refused
        self.leaks: list[str] = []
        self._report, self._batches, self._volley = report, batches, volley
        self._streams = load.streams(seed, length_s, mean_per_s) if form in forms.GENERATED else {}
        self._joining = load.joining(self._streams) if self._streams else {}
        self._joined: set[str] = set()
        self._ended = threading.Event()
        self._writer: Writing | None = None
        self._page: Page | None = None
        self._began_s = time.monotonic()

    def run(
        self, faults: int, spread_s: float, kinds: Collection[str] | None = None,
        had: Mapping[str, int] = NONE_YET,
    ) -> Verdict:  # fmt: skip
        """So many faults, of some kinds if they are named, while there is time and are rows.

        Those of a volley begin within `spread_s`. The last is a kill of the driver, whose restart
        works off the rest. Of slow kinds, those come that were `had` least often.
        """
        with ExitStack() as resources:
            self.small_disk = resources.enter_context(small_disk(self.directory))
            if self.form == forms.ON_HOSTS:  # after the disk, which hosts see as it was then
                cluster = cluster_of_hosts(forms.HOSTS, slots=2, memory_mb=2048)
                self._master = resources.enter_context(cluster)["spark.master"]
            if self.form in forms.WRITTEN:
                self._writer = resources.enter_context(writing(self.form, self.room))
                self.broker = self._writer.broker
            self._disturb(self._volleys(faults - 1, kinds, had), spread_s)
            if self._writer is not None:
                self._writer.stop()
            self._join_rest()
            try:
                self._finish()
            finally:
                if self.program.alive:  # it took too long
                    self.kill_driver()
            self._look_for_leaks()
            counts = self._writer.counts if self._writer is not None else {}
            return verify(self.form, self.directory, self._streams, self.length_s, counts)

    def _volleys(
        self, faults: int, among: Collection[str] | None, had: Mapping[str, int] = NONE_YET
    ) -> Iterator[list[str]]:
        """Rounds of every kind that is possible, in random order, in volleys of random size."""
        possible = [kind for kind, fault in FAULTS.items() if fault.possible(self)]
        some = [kind for kind in possible if among is None or kind in among]
        slow = [kind for kind in some if FAULTS[kind].slow]
        quick = [kind for kind in some if not FAULTS[kind].alone]
        once = [kind for kind in some if FAULTS[kind].ends]
        once += sorted(self.moments.sample(slow, len(slow)), key=lambda one: had.get(one, 0))[
            :SLOW_A_LEG
        ]
        while faults > 0 and (quick or once):
            for volley in self._parted([*quick, *once]):
                if self.now_s() > self.length_s or faults <= 0:
                    return
                yield volley[:faults]
                faults -= len(volley)
            once = [] if quick else once

    def _parted(self, kinds: list[str]) -> Iterator[list[str]]:
        """A round in volleys; a kind that comes alone is one by itself."""
        left = self.moments.sample(kinds, len(kinds))
        while left:
            alone = [place for place, kind in enumerate(left) if FAULTS[kind].alone]
            size = max(1, min([self.moments.randint(*self._volley), len(left), *alone[:1]]))
            yield left[:size]
            left = left[size:]

    def _disturb(self, volleys: Iterator[list[str]], spread_s: float) -> None:
        joiner = threading.Thread(target=self._join_in_time, daemon=True)
        self.start()
        joiner.start()
        try:
            self._recovered(0, ends=False, limit_s=START_LIMIT_S)
            self._page = Page(self.directory / "history.sqlite")
            before = self._held()
            for volley in self._in_their_moments(volleys):
                if not self.program.alive and self.program.told["finished"]:
                    break  # its streams are at their end
                self._injected(volley, spread_s)
            self._compare(before, self._held())
        finally:
            self._ended.set()
            joiner.join()
            if self._page is not None:
                self._page.kill()
            self.kill_driver()

    def _in_their_moments(self, volleys: Iterable[list[str]]) -> Iterator[list[str]]:
        """Volleys in turn; one whose moment does not come waits until after the next."""
        waiting: list[str] = []
        for volley in volleys:
            if FAULTS[volley[0]].moment is None:
                yield volley
            else:
                waiting = volley
            if waiting and self._comes(waiting[0], MOMENT_S):
                yield waiting
                waiting = []
        if waiting:
            came = self._comes(waiting[0], LAST_MOMENT_S)
            yield waiting if came else [FAULTS[waiting[0]].otherwise]

    def _comes(self, kind: str, limit_s: float) -> bool:
        """Whether the run tells in time of what a fault is waiting for."""
        moment = FAULTS[kind].moment
        assert moment is not None
        told, seen = self.program.told, self.program.told[moment]
        with suppress(TimeoutError):
            await_true(moment, lambda: told[moment] > seen, limit_s, 0.02)
        self.met[f"{moment} missed" if told[moment] == seen else moment] += 1
        return told[moment] > seen

    def _injected(self, volley: list[str], spread_s: float) -> None:
        with ThreadPoolExecutor(len(volley)) as together:
            own = [random.Random(self.moments.random()) for _ in volley]
            begun = [
                together.submit(self._inject, kind, one, one.uniform(0.0, spread_s))
                for kind, one in zip(volley, own, strict=True)
            ]
        for one in begun:
            one.result()

    def _inject(self, kind: str, moments: random.Random, after_s: float) -> None:
        fault = FAULTS[kind]
        if fault.moment is None:
            time.sleep(after_s)  # the random moment itself
        fault.inject(self, moments)
        over_s, periods = time.monotonic(), self._periods()
        if kind.startswith("driver killed"):
            over_s = self._killed_s
        restarted = self._recovered(self.program.batches, fault.ends)
        if kind.startswith(("loop ended", "driver killed")):
            self._await_period(periods)
        if kind == "page killed":
            assert self._page is not None
            if self._page.newest_run() != self._periods()[0]:
                raise RuntimeError("the page does not know the newest run")
        took_s = time.monotonic() - over_s
        self.injected.append(Injected(kind, round(self.now_s(), 1), round(took_s, 2), restarted))
        self._report(f"{self.now_s():6.0f} s  {self.form}: {kind}, all well {took_s:.1f} s later")

    def _recovered(self, seen: int, ends: bool, limit_s: float = RECOVERY_LIMIT_S) -> bool:
        """Until more batches have ended; True if the run was started again for that."""
        restarted = False
        deadline_s = time.monotonic() + limit_s
        while self.program.batches < seen + self._batches:
            if not self.program.alive:
                if self.program.told["finished"]:
                    return restarted
                self._refuse_traceback(ends)
                self.program.end()
                self.start()
                seen, restarted = 0, True
            if time.monotonic() > deadline_s:
                note_states([*self.program.below(), *self._below(EXECUTOR)], self.room / "hung")
                raise TimeoutError(f"no batch within {limit_s:.0f} s; {self.program.said()}")
            time.sleep(0.05)
        return restarted

    def _refuse_traceback(self, ends: bool) -> None:
        said = self.program.said()
        last = said.strip().splitlines()[-1] if said.strip() else ""
        if not ends or not last.startswith("error: "):
            raise RuntimeError(f"the program ended by itself:\n{said}")
        self._report(f"{self.now_s():6.0f} s  {self.form}: it ended: {last[:300]}")

    def now_s(self) -> float:
        """Since the leg was made."""
        return time.monotonic() - self._began_s

    def start(self, master: str | None = None, *more: str) -> None:
        """Start the program; the last one has ended."""
        load = (self.seed, self.length_s, self._mean_per_s)
        self.program = Soaked(self.directory, self.form, *load, master or self._master, *more)

    def kill_driver(self, again: bool = False) -> None:
        """kill -9; all processes it had are to be gone soon after.

        `again`: it is started at once, as a service manager does, while they are on their way out.
        """
        killed = self.program
        family = {*killed.below(), *self._below(EXECUTOR)} if killed.alive else set()
        self._killed_s = time.monotonic()
        with suppress(ProcessLookupError):
            killed.signal(signal.SIGKILL)
        killed.process.wait()
        if again:
            self.start()
        killed.end()
        with suppress(TimeoutError):
            await_true("their end", lambda: not any(map(_lives, family)), GONE_LIMIT_S, 0.05)
        left = [pid for pid in family if _lives(pid)]
        self.leaks += [f"process {pid}: {_command(pid)[:80]}" for pid in left]

    def _below(self, word: bytes) -> list[int]:
        """Processes of the run with a word in their command; on hosts, executors are elsewhere."""
        if self.form == forms.ON_HOSTS:
            return list(processes_below(os.getpid(), word))
        return self.program.below(word)

    def victim(self, word: bytes, moments: random.Random, forked: bool = False) -> int:
        """One of the run's processes with a word in its command, as soon as there is one.

        Of those that are `forked`, what an executor starts to fork them is left alone.
        """
        deadline_s = time.monotonic() + RECOVERY_LIMIT_S
        while True:
            found = self._below(word)
            if forked:  # one may outlive what forked it
                executors = self._below(EXECUTOR)
                found = [pid for pid in found if _parent(pid) not in executors]
            if found:
                return moments.choice(found)
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"there is no process {word.decode()}")
            time.sleep(0.05)

    def send(self, word: bytes, what: signal.Signals, moments: random.Random) -> int:
        """Send a signal to one of them: which it was."""
        while True:
            pid = self.victim(word, moments)
            with suppress(ProcessLookupError):  # it ended by itself, or by another fault
                os.kill(pid, what)
                return pid

    def new_page(self) -> None:
        """Kill the page and start another."""
        assert self._page is not None
        self._page.kill()
        self._page = Page(self.directory / "history.sqlite")

    def writing_paused(self) -> AbstractContextManager[Any]:
        """Nobody writes while the server is away."""
        assert self._writer is not None
        return self._writer.paused

    def _held(self) -> dict[str, int]:
        """What the driver's Python holds; nothing where it is not there."""
        folder = Path(f"/proc/{self.program.process.pid}")
        try:
            return {name: len(list((folder / where).iterdir()))
                    for name, where in (("threads", "task"), ("open files", "fd"))}  # fmt: skip
        except OSError:
            return {}

    def _compare(self, before: dict[str, int], after: dict[str, int]) -> None:
        for name in before.keys() & after.keys():
            if after[name] > before[name] + 16:
                self.leaks.append(f"{name} of the driver: {before[name]} -> {after[name]}")

    def _look_for_leaks(self) -> None:
        """Nothing of attempts, and no file of what was passed on, is left after a good end."""
        ours, outputs = self.directory / "checkpoint/penstock", self.directory
        left = [str(p.relative_to(ours)) for p in ours.rglob("*.new")]
        left += [str(p) for p in outputs.glob("*/_staged/*")]
        self.leaks += [f"file {name}" for name in left[:5]]
        if len(left) > 5:
            self.leaks.append(f"{len(left)} such files in all")

    def _join_in_time(self) -> None:
        """Let streams join when their time has come, whether the program lives or not."""
        if not self._joining:
            return
        folder = self.directory / "checkpoint/penstock"
        while not (folder / "sources/rows").is_dir():
            if self._ended.wait(0.2):
                return
        epoch_s = float(json.loads((folder / "epoch.json").read_text())["epoch_s"])
        for name, at_s in sorted(self._joining.items(), key=lambda item: item[1]):
            if self._ended.wait(max(0.0, epoch_s + at_s - time.time())):
                return
            while not self._join(name):  # its orders may be on a disk that is full
                if self._ended.wait(0.2):
                    return

    def _join_rest(self) -> None:
        for name in [name for name in self._joining if name not in self._joined]:
            self._join(name)

    def _join(self, name: str) -> bool:
        asked = StreamsProgram(self.directory / "checkpoint/penstock/sources", ["rows"])
        try:
            asked.add(name)
        except (PenstockError, OSError):
            return False
        self._joined.add(name)
        self._report(f"{self.now_s():6.0f} s  {self.form}: {name} joins")
        return True

    def _await_period(self, before: tuple[int, int]) -> None:
        def another() -> bool:
            run, count = self._periods()
            return count > 0 and (run, count) != before

        await_true("a period of the loop", another, RECOVERY_LIMIT_S)

    def _periods(self) -> tuple[int, int]:
        """The newest run and how many periods it has: by number, as clocks are set here."""
        with HistoryStore(str(self.directory / "history.sqlite"), create=False) as store:
            run = store.latest_run()
            return run, len(store.read_observations(run))

    def _finish(self) -> None:
        """A last run works off what is left, and lets the watermark pass."""
        for name in ("clock", "sync"):
            (self.room / name).unlink(missing_ok=True)
        began_s = time.monotonic()
        self.start("local[2]", "once")
        await_true(
            "batches", lambda: self.program.batches >= self._batches or not self.program.alive,
            FINISH_LIMIT_S,
        )  # fmt: skip
        took_s = time.monotonic() - began_s
        self.injected.append(Injected("driver killed", round(self.now_s(), 1), round(took_s, 2)))
        await_true("the end", lambda: not self.program.alive, FINISH_LIMIT_S)
        if self.program.end() != 0:
            raise RuntimeError(f"the last run failed:\n{self.program.said()}")


def _lives(pid: int) -> bool:
    state = _stat(pid)
    return bool(state) and state[0] != "Z"


def _parent(pid: int) -> int:
    state = _stat(pid)
    return int(state[1]) if state else 0


def _stat(pid: int) -> list[str]:
    """What the kernel says of a process, from its state on; empty if it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return "gone"
