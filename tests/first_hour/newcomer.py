"""Someone who types what the documents print, in a clean folder, and reads what comes."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIMIT_S = 900.0
PROGRAMS = {
    "penstock": f'"{sys.executable}" -m penstock "$@"',
    "python": f'"{sys.executable}" "$@"',
}
TYPED = (*PROGRAMS, "eval", "mkdir")
MARK = "-- what the shell holds now --"
KEEP = f"echo -n '{MARK}'; env -0"


@dataclass(frozen=True)
class Done:
    """What came of one command."""

    code: int
    out: str
    err: str
    took_s: float

    @property
    def last_line(self) -> str:
        """Of what went to the standard error."""
        return self.err.strip().splitlines()[-1] if self.err.strip() else ""


class Newcomer:
    """Types commands into one shell; each is printed with its time and its text."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        programs = folder / ".programs"
        programs.mkdir()
        for name, command in PROGRAMS.items():
            (programs / name).write_text(f"#!/bin/sh\nexec {command}\n")
            (programs / name).chmod(0o700)
        self.environment = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "XDG_RUNTIME_DIR": str(folder),  # where a cluster that stays is found again
        }

    def types(self, line: str, interrupt_when: Callable[[str], bool] | None = None) -> Done:
        """Type a command; Ctrl-C is pressed once a line of its standard error says so."""
        began_s = time.monotonic()
        running = subprocess.Popen(
            ["bash", "-c", f"{line}\n{KEEP}" if line.startswith("eval") else f"exec {line}"],
            cwd=self.folder, env=self.environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        seen = ""
        try:
            if interrupt_when is not None:
                assert running.stderr is not None
                for text in running.stderr:
                    seen += text
                    if interrupt_when(text):
                        running.send_signal(signal.SIGINT)
                        break
            out, err = running.communicate(timeout=LIMIT_S)
        except BaseException:
            running.kill()
            raise
        if line.startswith("eval"):  # holds for what is typed after it
            out, _, kept = out.partition(MARK)
            self.environment = dict(one.split("=", 1) for one in kept.split("\0") if one)
        done = Done(running.returncode, out, seen + err, time.monotonic() - began_s)
        said = f"{done.out}{done.err}[{done.took_s:.1f} s, exit code {done.code}]"
        sys.stdout.write(f"\n$ {line}\n{said}\n")  # pytest -s shows it
        return done

    def writes(self, name: str, text: str) -> None:
        """Save a file."""
        (self.folder / name).write_text(text, encoding="utf-8")


def printed_commands(document: Path) -> list[str]:
    """The commands in a document's blocks for the shell, in their order; what make does is left."""
    blocks = re.findall(r"```bash\n(.*?)```", document.read_text(encoding="utf-8"), re.DOTALL)
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line.startswith(TYPED)]
