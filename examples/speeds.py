from penstock import Files, Generator, Topology, steps

road = Topology("speeds", max_latency="5s")
road.source("reports", Generator(steps([(20, 200), (20, 800)]), keys=100, rows=20_000))


@road.operator("reports")
def moving(reports):
    return reports.where("value > 0.1").withWatermark("at", "1 second")


road.add(
    "speeds",
    """SELECT key AS vehicle, window.start AS since, 130 * avg(value) AS speed
       FROM moving GROUP BY key, window(at, '2 seconds')""",
    upstream="moving",
)
road.sink("out", "speeds", Files("out/speeds", overwrite=True))

if __name__ == "__main__":
    print(road.run())
