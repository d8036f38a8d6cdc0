"""The first line of an attached controller: what it does and what it only advises."""

from dataclasses import replace

import pytest

from penstock.config import Settings
from penstock.control.actions import MoveKeyGroups, SetExecutors
from penstock.spark.run.attached import greeting

SETTINGS = Settings(executors_max=4, allocation="milp")


@pytest.mark.parametrize(
    ("cannot", "options", "given", "line"),
    [
        ({}, {}, 0, "changes the number of executors (1 to 4) and where state lives"),
        ({}, {"allocation": None}, 0, "changes the number of executors (1 to 4)"),
        (
            {"executors": "The master is local."},
            {},
            0,
            "changes where state lives; only advises on the number of executors (The master is "
            "local)",
        ),
        (
            {"executors": "No executors.", "key_groups": "No stores."},
            {},
            0,
            "only advises on the number of executors (No executors) and where state lives (No "
            "stores)",
        ),
        (
            {},
            {"dry_run": True},
            0,
            "only advises on the number of executors (dry run) and where state lives (dry run)",
        ),
        (
            {"shed": "sources that are not Penstock's own take no orders"},
            {"allocation": None},
            0,
            "changes the number of executors (1 to 4)",
        ),
        (
            {},
            {"allocation": None},
            4,
            "changes the number of executors (1 to 4); the cluster gave this session all 4 "
            "executors it may have at once; to begin with 1, build it with "
            "penstock.session_settings(executors=(1, 4))",
        ),
        (
            {},
            {"allocation": None, "executors_min": 4},
            4,
            "changes the number of executors (4 to 4)",
        ),
    ],
)
def test_the_first_line(
    cannot: dict[str, str], options: dict[str, object], given: int, line: str
) -> None:
    names = {"executors": SetExecutors.NAME, "key_groups": MoveKeyGroups.NAME}
    told = {names.get(name, name): why for name, why in cannot.items()}
    assert greeting(told, replace(SETTINGS, **options), given) == line  # type: ignore[arg-type]
