from penstock import Admission, Files, Streams, Topology

# Every file in `in` is a sensor that goes on writing; `streams.toml` may say what to expect of it.
sensors = Topology("sensors", max_latency="5s")
sensors.source(
    "readings",
    Streams(
        files="in",
        pattern="*.json",
        schema="seq BIGINT, celsius DOUBLE",
        stream_column="sensor",
        declared="streams.toml",
        admission=Admission(lane_capacity=50_000),
    ),
)
sensors.add(
    "hot", "SELECT sensor, seq, celsius FROM readings WHERE celsius > 30", upstream="readings"
)
sensors.sink("out", "hot", Files("out/hot", overwrite=True))

if __name__ == "__main__":
    with sensors.start(checkpoint="state") as run:
        run.streams.add("cellar.json", greatest_rate=20)
        run.wait(60)
        for status in run.streams.status():
            print(status["streams"], status["waiting_rows"], "rows wait")
