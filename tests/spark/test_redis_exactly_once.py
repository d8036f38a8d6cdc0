"""Redis streams under kill -9 of executor, source runner, server and driver: exactly once."""

import json
import os
import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from brokers import redis_server
from brokers.ordeal import survive
from brokers.writing import Writer

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("no_session")]


@pytest.mark.skipif(redis_server.missing() is not None, reason=str(redis_server.missing()))
@pytest.mark.long
def test_every_entry_once_and_in_order(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    seed = int(os.environ.get("PENSTOCK_TEST_SEED", random.randrange(2**32)))
    print(f"PENSTOCK_TEST_SEED={seed}")
    folder = tmp_path / "redis"
    folder.mkdir()
    with redis_server.redis_server(folder) as server:
        where = {"redis": server.url, "keys": "s*"}
        (tmp_path / "streams.json").write_text(json.dumps(where))
        client = server.client()

        def send(rows: Mapping[str, list[bytes]]) -> None:
            pipeline = client.pipeline(transaction=False)
            for key, values in rows.items():
                for value in values:
                    pipeline.xadd(key, {"value": value})
            pipeline.execute()

        def restart() -> None:
            server.kill()
            server.start()

        writer = Writer(tmp_path, str, send)
        long = request.config.getoption("--long")
        try:
            survive(
                tmp_path, random.Random(seed), writer, restart, 5 if long else 1, executors=long
            )
        finally:
            writer.stop()
            client.close()
