"""Kill and stop at random, under a random load, until the time is over; then compare everything.

Run: make soak [MINUTES=30] [SEED=n]. The seed decides the load, the order of faults and the pauses
between them.
"""

import argparse
import json
import math
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from penstock.control.history.store import HistoryStore, Within
from penstock.spark.sources.program import StreamsProgram
from soak import load
from soak.processes import EXECUTOR, RUNNER, WORKER, Page, Soaked, await_true
from soak.verify import Verdict, verify

KINDS = ("executor", "source runner", "controller", "page", "driver")
# Faults of the long form besides those: a worker of the executors killed, and processes that hang
# for some seconds as they do on a machine that swaps.
MORE_KINDS = ("Python worker", "executor stopped", "source runner stopped", "driver stopped")
LONGEST_STOP_S = 8.0
WORDS = {
    "executor": EXECUTOR, "executor stopped": EXECUTOR, "source runner": RUNNER,
    "source runner stopped": RUNNER, "Python worker": WORKER,
}  # fmt: skip
RECOVERY_LIMIT_S = 120.0
FINISH_LIMIT_S = 300.0


class Soak:
    """One soak from start to verdict."""

    def __init__(
        self, directory: Path, seed: int, length_s: float, report: Callable[[str], None] = print
    ) -> None:
        self._directory, self._seed, self._length_s, self._report = (
            directory,
            seed,
            length_s,
            report,
        )
        self._moments = random.Random(seed + 1)
        self._streams = load.streams(seed, length_s)
        self._joining = load.joining(self._streams)
        self._joined: set[str] = set()
        self._ended = threading.Event()
        self._joiner = threading.Thread(target=self._join_in_time, daemon=True)
        self._history = directory / "history.sqlite"
        self._page: Page | None = None
        self.kills: Counter[str] = Counter()
        self.recoveries_s: list[float] = []

    def run(self, end_s: float, pause_s: float) -> Verdict:
        """Kill in rounds of every kind, as long as it is not yet `end_s` seconds after the start.

        Between two kills a random time of up to `pause_s` passes. The last to be killed is the
        driver, whose restart works off the rest; with no time at all it is killed only then.
        """
        self._began_s = time.monotonic()
        self._program = self._started()
        self._joiner.start()
        try:
            await_true(
                "the first batch", lambda: self._lives() and self._program.batches > 0,
                RECOVERY_LIMIT_S,
            )  # fmt: skip
            self._page = Page(self._history)
            self._round(KINDS if end_s > 0 else KINDS[:-1], math.inf, pause_s)
            while self._now_s() < end_s:
                self._round((*KINDS, *MORE_KINDS), end_s, pause_s)
        finally:
            self._ended.set()
            self._joiner.join()
            if self._page is not None:
                self._page.kill()
            with suppress(ProcessLookupError):
                self._program.signal(signal.SIGKILL)
            self._program.end()
        self.kills["driver"] += 1
        self._join_rest()
        self._finish()
        return verify(self._directory, self._streams)

    def _round(self, kinds: Sequence[str], end_s: float, pause_s: float) -> None:
        """Every kind once, in a random order, while there is time."""
        for kind in self._moments.sample(kinds, len(kinds)):
            if self._now_s() < end_s:
                time.sleep(self._moments.uniform(0.0, pause_s))  # the random moment itself
                self._kill(kind)

    def _now_s(self) -> float:
        return time.monotonic() - self._began_s

    def _started(self, master: str = "embedded", *more: str) -> Soaked:
        return Soaked(self._directory, master, self._seed, self._length_s, *more)

    def _join_in_time(self) -> None:
        """Let streams join when their time has come, whether the program lives or not."""
        folder = self._directory / "checkpoint/penstock"
        while not (folder / "sources/rows").is_dir():
            if self._ended.wait(0.2):
                return
        epoch_s = float(json.loads((folder / "epoch.json").read_text())["epoch_s"])
        for name, at_s in sorted(self._joining.items(), key=lambda item: item[1]):
            if self._ended.wait(max(0.0, epoch_s + at_s - time.time())):
                return
            self._join(name)

    def _join_rest(self) -> None:
        for name in [name for name in self._joining if name not in self._joined]:
            self._join(name)

    def _join(self, name: str) -> None:
        asked = StreamsProgram(self._directory / "checkpoint/penstock/sources", ["rows"])
        asked.add(name)
        self._joined.add(name)
        self._report(f"{self._now_s():6.0f} s  {name} joins")

    def _kill(self, kind: str) -> None:
        """Kill once, and wait until everything works again."""
        killed_at_s, seen = time.time(), self._program.batches
        if kind == "driver":
            self._program.signal(signal.SIGKILL)
            self._program.end()
            self._program = self._started()
            seen = 0
        elif kind == "page":
            assert self._page is not None
            self._page.kill()
            self._page = Page(self._history)
        elif kind == "controller":
            self._program.signal(signal.SIGUSR1)
        elif kind == "driver stopped":
            self._stop(self._program.process.pid)
        elif kind.endswith("stopped"):
            self._stop(self._victim(WORDS[kind]))
        else:
            os.kill(self._victim(WORDS[kind]), signal.SIGKILL)
        took_s = await_true(
            f"two more batches after the {kind} was killed",
            lambda: self._lives() and self._program.batches >= seen + 2,
            RECOVERY_LIMIT_S,
        )
        took_s += await_true(
            f"a period of the loop after the {kind} was killed",
            lambda: self._newest_period_s() > killed_at_s + took_s,
            RECOVERY_LIMIT_S,
        )
        assert self._page is not None
        if self._page.newest_run() != self._newest_run():
            raise RuntimeError("the page does not know the newest run")
        self.kills[kind] += 1
        self.recoveries_s.append(took_s)
        done = kind if kind.endswith("stopped") else f"{kind} killed"
        self._report(f"{self._now_s():6.0f} s  {done}, all well {took_s:.1f} s later")

    def _stop(self, pid: int) -> None:
        """Let a process hang for a while; it may be gone when it is to go on."""
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            time.sleep(self._moments.uniform(1.0, LONGEST_STOP_S))
            os.kill(pid, signal.SIGCONT)

    def _lives(self) -> bool:
        if not self._program.alive:
            errors = (self._directory / "stderr.txt").read_text()[-2000:]
            raise RuntimeError(f"the program ended by itself:\n{errors}")
        return True

    def _victim(self, word: bytes) -> int:
        await_true("a process to kill", lambda: bool(self._program.below(word)), RECOVERY_LIMIT_S)
        return self._moments.choice(self._program.below(word))

    def _newest_run(self) -> int:
        with HistoryStore(str(self._history), create=False) as store:
            return store.latest_run()

    def _newest_period_s(self) -> float:
        with HistoryStore(str(self._history), create=False) as store:
            since = Within(since_s=time.time() - RECOVERY_LIMIT_S)
            seen = store.read_observations(store.latest_run(), since)
        return max((one.at_s for one in seen), default=0.0)

    def _finish(self) -> None:
        """A last run works off what is left, and lets the watermark pass."""
        last = self._started("local[2]", "once")
        await_true("the end", lambda: not last.alive, FINISH_LIMIT_S)
        if last.end() != 0:
            errors = (self._directory / "stderr.txt").read_text()[-2000:]
            raise RuntimeError(f"the last run failed:\n{errors}")


def main() -> int:
    """The long form."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--pause", type=float, default=15.0, help="longest time between two kills")
    given = parser.parse_args()
    seed = random.randrange(2**31) if given.seed is None else given.seed
    print(f"seed {seed}: make soak MINUTES={given.minutes:g} SEED={seed}", flush=True)
    length_s = 60 * given.minutes
    with tempfile.TemporaryDirectory(prefix="penstock-soak-") as folder:
        soak = Soak(Path(folder), seed, length_s, lambda line: print(line, flush=True))
        verdict = soak.run(length_s, given.pause)
    kills = ", ".join(f"{kind} {count}" for kind, count in sorted(soak.kills.items()))
    took_s = np.asarray(soak.recoveries_s)
    print(
        f"faults: {kills}; recovery: median {np.median(took_s):.1f} s, 99% within "
        f"{np.percentile(took_s, 99):.1f} s, slowest {took_s.max():.1f} s; seed {seed}"
    )
    print(verdict.line())
    return 1 if verdict.faults else 0


if __name__ == "__main__":
    sys.exit(main())
