"""Whoever writes to the streams of a test: rows numbered in each stream, more streams as it goes.

Two kinds of streams: `s...` are found by the source, `d...` are declared in a file, from which
they vanish again while they are still written to.
"""

import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

PAUSE_S = 0.2
ROWS_AT_ONCE = 2
STREAMS_AT_FIRST, STREAMS_AT_MOST = 6, 14
ROUNDS_TO_NEXT_STREAM = 4
DECLARED_AT_ONCE = 2

Send = Callable[[Mapping[str, list[bytes]]], None]


class Writer:
    """Writes until it is told to stop; `counts` is what each stream has then."""

    def __init__(self, directory: Path, name: Callable[[str], str], send: Send) -> None:
        self._file = directory / "streams.toml"
        self._name, self._send = name, send
        self.counts: dict[str, int] = {}
        self.paused = threading.Lock()  # held while the server is away
        self._ended = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._declare(0)
        self._thread.start()

    def stop(self) -> None:
        """No more rows, and all streams are declared to the end as they last were."""
        self._ended.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _write(self) -> None:
        try:
            for round_number in range(10**9):
                if self._ended.wait(PAUSE_S):
                    return
                with self.paused:
                    self._one_round(round_number)
        except BaseException as failure:  # noqa: BLE001 - told by `stop`
            self._failure = failure

    def _one_round(self, number: int) -> None:
        found = min(STREAMS_AT_FIRST + number // ROUNDS_TO_NEXT_STREAM, STREAMS_AT_MOST)
        declared = number // ROUNDS_TO_NEXT_STREAM
        if number % ROUNDS_TO_NEXT_STREAM == 0 and found <= STREAMS_AT_MOST:
            self._declare(declared)
        names = [f"s{place}" for place in range(found)]
        # One that has left is written to for a while: what comes then is nobody's.
        names += [f"d{place}" for place in range(max(declared - 2, 0), declared + DECLARED_AT_ONCE)]
        rows: dict[str, list[bytes]] = {}
        for name in map(self._name, names):
            first = self.counts.get(name, 0)
            rows[name] = [_row(seq) for seq in range(first, first + ROWS_AT_ONCE)]
            self.counts[name] = first + ROWS_AT_ONCE
        self._send(rows)

    def _declare(self, first: int) -> None:
        tables = [
            f'[streams."{self._name(f"d{place}")}"]\nexpected_rate = 60\n'
            for place in range(first, first + DECLARED_AT_ONCE)
        ]
        scratch = self._file.with_suffix(".new")
        scratch.write_text("\n".join(tables), encoding="utf-8")
        scratch.replace(self._file)


def _row(seq: int) -> bytes:
    return json.dumps({"seq": seq}).encode()
