"""The least a Python source can do: the same record batch again and again, in some tasks."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

FORMAT = "bare"


class BareSource(DataSource):
    """Options: `columns`, `file` (an IPC stream of one batch), `tasks`, `times` in each task."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return str(self.options["columns"])

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        options = self.options
        return BareReader(options["file"], int(options["tasks"]), int(options["times"]))


class BareReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One batch, then nothing."""

    def __init__(self, file: str, tasks: int, times: int) -> None:
        self._file, self._tasks, self._times = file, tasks, times

    def initialOffset(self) -> dict[str, Any]:
        return {"batch": 0}

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
        return {"batch": 1}

    def prepareForTriggerAvailableNow(self) -> None:
        pass

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return [InputPartition(number) for number in range(self._tasks)]

    def commit(self, end: dict[str, Any]) -> None:
        pass

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with pa.memory_map(self._file) as file:
            batch = pa.ipc.open_stream(file).read_next_batch()
            for _ in range(self._times):
                yield batch
