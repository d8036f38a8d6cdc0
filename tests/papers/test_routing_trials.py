"""The tasks of the routing experiments."""

from experiments.routing.trials.osg import task_run


def test_osg_keeps_tasks_evener_than_round_robin() -> None:
    for skewed in (False, True):
        osg = task_run(5, skewed, "osg", shrink=0.3)
        robin = task_run(5, skewed, "round-robin", shrink=0.3)
        assert osg.busy_deviation < robin.busy_deviation
        assert osg.pending_rows < robin.pending_rows
        assert osg.latency_after_s < robin.latency_after_s
