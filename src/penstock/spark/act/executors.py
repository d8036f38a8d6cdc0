"""Executors up and down on a running session: the loop's actuator on Spark.

Growth is a request to the cluster manager for a total. Without dynamic allocation Spark removes
nothing when the total falls, so surplus executors are chosen here and decommissioned: they finish
their tasks, take no more, and leave. The youngest go first, since the oldest hold most state.

Shuffle files of a batch in flight leave with an executor; Spark then repeats the tasks that wrote
them, so nothing is lost. Migrating them instead (`spark.storage.decommission.enabled`) never ends
while a streaming query keeps writing new ones: the executor was only cut off by the kill timeout.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from pyspark.sql import SparkSession

from penstock.control.actions import Action, Outcome, SetExecutors
from penstock.errors import InvalidInput, PenstockError, Unavailable
from penstock.spark import handles
from penstock.spark.act.shortage import Shortage
from penstock.spark.cluster.generated_code import code_settings
from penstock.spark.handles import Family

GROW_LIMIT_S = 60.0
DRAIN_LIMIT_S = 60.0
_FORCE_KILL_S = 30
_POLL_S = 0.1
_NEVER = "3650d"
_WITHDRAWN_AFTER_S = 30
_ANY_NUMBER = 2**31 - 1


def executor_settings(initial: int, maximum: int, slots: int = 1) -> dict[str, str]:
    """Session settings that let the number of executors start at `initial` and be changed.

    A standalone master gives an application all executors that `spark.cores.max` allows at once,
    unless dynamic allocation is on: only then does it wait for a number. So dynamic
    allocation is on, with waiting times so long that it never acts after giving that number.
    """
    if not 1 <= initial <= maximum:
        raise InvalidInput(
            f"executors: the initial number is {initial}; it must be from 1 to the maximum of "
            f"{maximum}."
        )
    if slots < 1:
        raise InvalidInput(f"executors: slots is {slots}; an executor needs at least 1.")
    return {
        # Without it one executor would take all the cores of its worker.
        "spark.executor.cores": str(slots),
        # The cluster manager's own bound: nothing here can ask for more.
        "spark.cores.max": str(maximum * slots),
        "spark.executor.instances": str(initial),
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.initialExecutors": str(initial),
        "spark.dynamicAllocation.minExecutors": str(initial),
        "spark.dynamicAllocation.maxExecutors": str(maximum),
        "spark.dynamicAllocation.schedulerBacklogTimeout": _NEVER,
        # None is idle above the initial number, as Spark adds none by itself. But on Kubernetes
        # pods that wait for a machine, and that nobody wants any more, are kept for so long.
        "spark.dynamicAllocation.executorIdleTimeout": f"{_WITHDRAWN_AFTER_S}s",
        # Allowed without an external shuffle service only with this.
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        # Executors are removed by draining; a stuck one is cut off.
        "spark.decommission.enabled": "true",
        "spark.storage.decommission.enabled": "false",
        "spark.storage.decommission.shuffleBlocks.enabled": "false",
        "spark.executor.decommission.forceKillTimeout": f"{_FORCE_KILL_S}s",
        # YARN and Kubernetes end an application after so many lost executors, however long ago; and
        # on Kubernetes each pod that a full quota refuses counts as one, every second.
        "spark.executor.failuresValidityInterval": "1h",
        "spark.executor.maxNumFailures": str(_ANY_NUMBER),
        # After an executor was killed, which may have been for its memory, Spark would start all
        # others with a single slot.
        "spark.kubernetes.allocation.recoveryMode.enabled": "false",
        # A batch whose shuffle files left with a drained executor is repeated, not counted failed.
        "spark.stage.ignoreDecommissionFetchFailure": "true",
        # Spark forgets generated code beyond 100 classes, which some queries exceed: their batches
        # would each compile all of it again, on the driver and on executors.
        **code_settings(),
    }


def executors_given_at_once(spark: SparkSession) -> int:
    """Executors that a standalone master gives without being asked for a number; else 0."""
    conf, master = spark.sparkContext.getConf(), str(spark.sparkContext.master)
    allocates = conf.get("spark.dynamicAllocation.enabled", "false") == "true"
    if allocates or not master.startswith("spark://"):
        return 0
    most = _most(conf.get("spark.cores.max"), int(conf.get("spark.executor.cores", "0")))
    if most is not None:
        return most  # though some of them may be on their way still
    with suppress(Unavailable):
        return len(handles.active_executor_ids(spark))
    return 0


class SparkExecutors:
    """Carries SetExecutors out on a session; implements control.ports.Actuator."""

    def __init__(
        self,
        spark: SparkSession,
        *,
        grow_limit_s: float = GROW_LIMIT_S,
        drain_limit_s: float = DRAIN_LIMIT_S,
    ) -> None:
        self._spark = spark
        self._grow_limit_s = grow_limit_s
        self._drain_limit_s = drain_limit_s
        conf = spark.sparkContext.getConf()
        self._master = str(spark.sparkContext.master)
        self._slots = int(conf.get("spark.executor.cores", "0"))
        self._most = _most(conf.get("spark.cores.max"), self._slots)
        self._unavailable = self._why_unavailable()
        self._asked = int(conf.get("spark.executor.instances", "0"))
        self._took_over = False
        self._shortage = Shortage()
        self._lost_pods = 0

    def unavailable(self) -> Mapping[str, str]:
        return {SetExecutors.NAME: self._unavailable} if self._unavailable else {}

    def executors(self) -> int:
        """Executors asked for at present; a local master counts as one.

        One that came late, after its request was withdrawn, counts too: it is there to be drained.
        """
        if self._unavailable and self._master.startswith("local"):
            return 1
        self._replace_lost()
        return max(self._asked, len(self._active()))

    def slots_per_executor(self) -> int:
        if self._master.startswith("local"):
            return self._spark.sparkContext.defaultParallelism
        return self._slots or self._spark.sparkContext.defaultParallelism

    def act(self, action: Action) -> Outcome:
        """Bring the number of executors to the total; waits, with a limit, until it is so."""
        began_s = time.monotonic()
        try:
            if not isinstance(action, SetExecutors):
                raise Unavailable("Only the number of executors can be set here.")
            self._check(action.total)
            detail = self._carry_out(action.total, action.leaving)
            return Outcome(action, True, detail, time.monotonic() - began_s)
        except PenstockError as reason:
            return Outcome(action, False, str(reason), time.monotonic() - began_s)

    def take_over(self) -> None:
        """From here on Spark's own dynamic allocation, if it is on, changes nothing any more."""
        if not self._took_over:
            stopped = handles.stop_allocation_manager(self._spark)
            self._took_over = True
            with suppress(Unavailable):
                # It may have given back some since the session's start, and wants them no more.
                if stopped and len(self._active()) < self._asked:
                    self._request(self._asked)

    def _check(self, total: int) -> None:
        if self._unavailable:
            raise Unavailable(self._unavailable)
        if total < 1:
            raise InvalidInput(f"{total} executors were wanted; a query needs at least 1.")
        if self._most is not None and total > self._most:
            raise InvalidInput(
                f"{total} executors were wanted; spark.cores.max allows {self._most}."
            )

    def _carry_out(self, total: int, leaving: tuple[str, ...]) -> str:
        self.take_over()
        before = len(self._active())
        wanted, total = total, self._without_shortage(total, before)
        refused = self._trouble().refused
        self._request(total)
        if before > total:
            self._asked = total
            return f"{before} -> {total} executors; {self._drain_to(total, leaving)}"
        self._until(
            lambda: len(self._active()) >= total or self._trouble().refused > refused,
            self._grow_limit_s,
        )
        if len(self._active()) < total:
            why = self._take_fewer(total, self._trouble().refused - refused)
            present = len(self._active())
            self._request(max(self._asked, present))
            self._shortage.fell_short(present, total)
            raise Unavailable(
                f"The cluster gave {present} of {total} executors ({why}); the request is "
                "withdrawn."
            )
        self._asked = total
        self._shortage.met(total)
        fewer = f" of {wanted} wanted: {self._shortage.reason()}" if total < wanted else ""
        return f"{before} -> {total} executors{fewer}"

    def _request(self, total: int) -> None:
        """Ask for a total that works, besides pods of lost nodes that Spark takes for running."""
        self._lost_pods = self._trouble().lost
        handles.request_total_executors(self._spark, total + self._lost_pods)

    def _replace_lost(self) -> None:
        """Kubernetes keeps the pods of a node that is gone until it is back or given up."""
        if self._took_over and self._trouble().lost != self._lost_pods:
            with suppress(Unavailable):  # tried again in the next period
                self._request(self._asked)

    def _take_fewer(self, total: int, refused: int) -> str:
        """Wait for those that come all the same, and say why no more do.

        What the API server of Kubernetes refuses, Spark tries again each second.
        """
        if refused <= 0:
            late = f"no more within {self._grow_limit_s:g} s"
            return next((f"{late}: {said}" for said in self._trouble().waiting), late)
        granted = max(self._asked, total - refused)
        self._request(granted)
        self._until(lambda: len(self._active()) >= granted, self._grow_limit_s)
        return "its API server refused pods, as a quota makes it do; the driver's log has its words"

    def _trouble(self) -> handles.PodTrouble:
        """What Kubernetes says of pods that do not run, as far as it is known."""
        with suppress(Unavailable):
            return handles.pod_trouble(self._spark)
        return handles.PodTrouble()

    def _without_shortage(self, total: int, present: int) -> int:
        """What may be asked for; Unavailable if that is no more than there is."""
        most = self._shortage.most()
        if most is None or total <= max(most, present):
            return total
        if most <= present:
            said = self._shortage.reason()
            raise Unavailable(f"{said[0].upper()}{said[1:]}.")
        return most

    def _drain_to(self, total: int, leaving: tuple[str, ...] = ()) -> str:
        """Drain until `total` are left, those named first, then the youngest.

        Also ones that were still on their way.
        """
        drained: list[str] = []

        def settled() -> bool:
            present = handles.executors(self._spark)
            active = [executor.id for executor in present if executor.active]
            for executor_id in sorted(active, key=lambda one: one in leaving)[total:]:
                with suppress(Unavailable):  # gone since it was listed; otherwise tried again
                    handles.decommission_executor(self._spark, executor_id)
                    drained.append(executor_id)
            return len(active) <= total and not any(one.id in drained for one in present)

        left = self._until(settled, self._drain_limit_s)
        active = len(self._active())
        if active > total:
            raise Unavailable(f"{active - total} of {active} executors could not be drained.")
        # Drained executors take no tasks from the first moment on: a slow leave is no failure.
        return f"drained {', '.join(drained)}" + ("" if left else ", not all of them gone yet")

    def _until(self, condition: Callable[[], bool], limit_s: float) -> bool:
        """Wait for a condition; False when it did not come within the limit."""
        deadline = time.monotonic() + limit_s
        while not condition():
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_S)
        return True

    def _active(self) -> list[handles.ExecutorInfo]:
        return [executor for executor in handles.executors(self._spark) if executor.active]

    def _why_unavailable(self) -> str:
        broken = handles.why_unavailable(
            self._spark, Family.REQUEST_EXECUTORS, Family.DRAIN_EXECUTORS, Family.LIST_EXECUTORS
        )
        if broken:
            return broken
        standalone = self._master.startswith("spark://")
        if standalone and not self._slots:
            return (
                "spark.executor.cores is not set, so one executor takes all cores of a worker; "
                "build the session with penstock.session_settings()."
            )
        return ""


def _most(cores_max: str | None, slots: int) -> int | None:
    return int(cores_max) // slots if cores_max is not None and slots else None
