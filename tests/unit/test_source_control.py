"""Orders from the driver to a source's runner: by parts, by several, and never half."""

import threading
from pathlib import Path

import pytest

from penstock.errors import InvalidInput
from penstock.spark.sources.control import Control, ControlFile, Controls, TaskOrders
from penstock.spark.sources.program import StreamsProgram


def test_orders_are_given_by_parts_and_all_of_them_hold(tmp_path: Path) -> None:
    controls, runner = Controls(tmp_path), Controls(tmp_path).of("reports")
    assert runner.read() == Control()
    controls.order(["reports"], shed=0.1, cheaper=("lookup",))
    controls.of("reports").order(route_tasks=5)
    StreamsProgram(tmp_path, ["reports"]).add("a", lifetime=3)
    StreamsProgram(tmp_path, ["reports"]).limit(lanes_max=4)
    controls.order(["reports"], shed=0.2)
    assert runner.read() == Control(
        shed=0.2, cheaper=("lookup",), route_tasks=5, added={"a": {"lifetime": 3.0}},
        limits={"lanes_max": 4},
    )  # fmt: skip


def test_each_component_that_reads_a_source_has_tasks_of_its_own(tmp_path: Path) -> None:
    first, second = Controls(tmp_path, "first"), Controls(tmp_path, "second")
    first.order_tasks(["rows"], 3)
    second.order_tasks(["rows"], 7)
    assert TaskOrders.of(first.options("rows")).tasks(1) == 3
    assert TaskOrders.of(second.options("rows")).tasks(1) == 7
    assert TaskOrders.of(Controls(tmp_path, "third").options("rows")).tasks(1) == 1
    assert TaskOrders.of({}).tasks(2) == 2


def test_what_cannot_be_read_leaves_the_orders_before_it(tmp_path: Path) -> None:
    file = tmp_path / "control.json"
    runner = ControlFile(file)
    ControlFile(file).order(shed=0.5)
    assert runner.read().shed == 0.5
    for rubbish in ("[", "[]", '{"tasks": 3}', '{"shed": "half"}', '{"resumed": {"a": 3}}'):
        file.write_text(rubbish)
        assert runner.read().shed == 0.5
        assert "cannot be read" in runner.fault
        with pytest.raises(InvalidInput, match="remove it, then try again"):
            ControlFile(file).order(shed=0.1)
    file.unlink()
    assert runner.read() == Control()
    assert runner.fault == ""


def test_orders_out_of_range_are_brought_into_it(tmp_path: Path) -> None:
    file = tmp_path / "control.json"
    file.write_text('{"shed": 7, "interval_s": -1, "tasks": {"": 0}, "route_tasks": 0}')
    found = ControlFile(file).read()
    assert (found.shed, found.interval_s, found.tasks, found.route_tasks) == (1.0, 0.0, {"": 1}, 1)


def test_orders_of_several_threads_are_all_kept(tmp_path: Path) -> None:
    names = [f"stream-{number}" for number in range(40)]

    def add(some: list[str]) -> None:
        for name in some:
            StreamsProgram(tmp_path, ["rows"]).add(name)

    threads = [threading.Thread(target=add, args=(names[n::4],)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(Controls(tmp_path).of("rows").read().added) == set(names)
