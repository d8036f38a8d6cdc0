"""Faults of every kind at random, over every form of topology, until there were enough of them.

Run: make soak [FAULTS=500 | MINUTES=30] [SEED=n] [FORMS=fused,apart] [KINDS="full disk,slow disk"]
A leg is one topology from its start to the comparison of its results; the seed decides the form,
load, faults and moments of each. What was done is kept in runs/soak/SEED.json after each leg, and
the same command goes on from there.
"""

import argparse
import json
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks._hosts import can_have_hosts
from soak import forms, report, written
from soak.faults import FAULTS
from soak.leg import Leg

FAULTS_A_LEG = 50
LEG_S = 300.0  # at most, until its last fault; its streams last a while longer
REST_S = 40.0  # of a leg, to work off what is left and compare
LEAST_S = 120.0  # of a leg with all of that, if it is not the only one
SPREAD_S = 2.0


def main() -> int:
    """The long form."""
    given = _given()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that a leg takes its hosts along
    seed = random.randrange(2**31) if given.seed is None else given.seed
    kept = Path("runs/soak") / f"{seed}.json"
    kept.parent.mkdir(parents=True, exist_ok=True)
    document = json.loads(kept.read_text()) if kept.exists() else {"seed": seed, "legs": []}
    done = sum(len(leg["faults"]) for leg in document["legs"])
    print(f"seed {seed}: make soak SEED={seed}; {done} faults so far, in {kept}", flush=True)
    began_s = time.monotonic()
    failed = False
    while done < given.faults:
        number = len(document["legs"])
        left_s = 60 * given.minutes - (time.monotonic() - began_s)
        length_s = length_of_leg(left_s, number, len(given.forms))
        if length_s is None:
            break
        most = min(FAULTS_A_LEG, given.faults - done)
        # Without the kill at each leg's end, which goes on in another way.
        had = Counter(fault["kind"] for leg in document["legs"] for fault in leg["faults"][:-1])
        leg = _leg(seed, number, given.forms, given.kinds, most, length_s, had)
        document["legs"].append(leg)
        done += len(leg["faults"])
        failed |= bool(leg["wrong"])
        document["table"] = report.table(document["legs"])
        scratch = kept.with_suffix(".new")
        scratch.write_text(json.dumps(document, indent=1), encoding="utf-8")
        scratch.replace(kept)
    print(
        report.as_text(report.table(document["legs"])), report.summary(document["legs"]), sep="\n"
    )
    wrong = [one for leg in document["legs"] for one in leg["wrong"]]
    verdict = "; ".join(["FAILED", *wrong]) if wrong else "nothing lost, nothing twice, no leak"
    print(f"{done} faults in {len(document['legs'])} legs; seed {seed}; {verdict}")
    return 1 if failed else 0


def length_of_leg(left_s: float, number: int, forms_in_all: int) -> float | None:
    """How long there are faults in the leg of a number; None if no time is left for one.

    In the first round each form has its turn, and what one leaves is shared by those after it; then
    there are as many more as there is time for.
    """
    turns, least_s = forms_in_all - number % forms_in_all, 1.0
    if number >= forms_in_all:
        turns, least_s = min(turns, max(1, int(left_s / LEAST_S))), LEAST_S
    if left_s < least_s:
        return None
    return min(LEG_S, max(1.0, left_s / turns - REST_S))


def _leg(
    seed: int, number: int, among: list[str], kinds: list[str] | None, most: int, length_s: float,
    had: Counter[str],
) -> dict[str, Any]:  # fmt: skip
    moments = random.Random(f"{seed} {number // len(among)}")
    form = moments.sample(among, len(among))[number % len(among)]
    own = random.Random(f"{seed} {number}").randrange(2**31)
    print(f"leg {number}: {form}", flush=True)
    room = Path(tempfile.mkdtemp(prefix="penstock-soak-"))
    leg = Leg(room, form, own, length_s, lambda line: print(line, flush=True))
    rows, wrong = 0, list[str]()
    try:
        verdict = leg.run(most, SPREAD_S, kinds, had)
        rows, wrong = verdict.rows, [*verdict.faults, *leg.leaks]
        print(f"{leg.now_s():6.0f} s  {form}: {verdict.line()}", flush=True)
    except (RuntimeError, TimeoutError, AssertionError) as failure:
        wrong = [f"leg {number} ({form}): {str(failure)[-2000:]}"]
    print("\n".join(f"WRONG: {one}" for one in wrong), flush=True, end="\n" if wrong else "")
    if wrong:
        print(f"what it said is in {room}; again: make soak SEED={seed} FORMS={form}", flush=True)
    else:
        shutil.rmtree(room)
    return {
        "form": form, "seed": own, "rows": rows, "seconds": round(leg.now_s()),
        "faults": [one.as_json() for one in leg.injected], "met": dict(leg.met), "wrong": wrong,
    }  # fmt: skip


def _given() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--faults", type=int, default=10**9)
    parser.add_argument("--minutes", type=float, default=10**9)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--forms", type=_words(forms.FORMS), default=list(forms.FORMS))
    parser.add_argument("--kinds", type=_words(tuple(FAULTS)), default=None)
    given = parser.parse_args()
    for form in list(given.forms):
        if (why := _missing(form)) is not None:
            print(f"without {form}: {why}")
            given.forms.remove(form)
    return given


def _missing(form: str) -> str | None:
    """Why a form cannot be had here; None if it can."""
    if form == forms.ON_HOSTS:
        return None if can_have_hosts() else "hosts of their own need root and the program ip"
    return written.missing(form)


def _words(allowed: tuple[str, ...]) -> Any:
    def parsed(text: str) -> list[str]:
        found = [word.strip() for word in text.split(",")]
        if unknown := [word for word in found if word not in allowed]:
            raise argparse.ArgumentTypeError(f"{unknown[0]!r}; allowed: {', '.join(allowed)}")
        return found

    return parsed


if __name__ == "__main__":
    sys.exit(main())
