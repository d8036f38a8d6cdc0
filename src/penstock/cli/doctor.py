"""`penstock doctor`: what this machine has, what it lacks, and what to do about it."""

from typing import Annotated

import typer

from penstock.cli.exit_codes import FAILED
from penstock.cli.output import JsonFlag, one_line, print_json


def doctor(
    spark: Annotated[
        bool,
        typer.Option("--spark", help="Also start a small local Spark session; takes some seconds."),
    ] = False,
    master: Annotated[
        str | None,
        typer.Option(
            "--master",
            help="Also start a session on this master, and say which decisions can be carried out "
            "there and which would be advice only.",
        ),
    ] = None,
    as_json: Annotated[bool, JsonFlag] = False,
) -> None:
    """Check Python, Java, pyspark, ports, memory and disk; exit code 1 if something is wrong."""
    from penstock.spark.cluster.doctor import examine

    if master is not None:
        from penstock.spark.run.actuators import examine_master
        from penstock.spark.run.before_start import check_master

        check_master(master)
    checks = examine(with_spark=spark)
    if master is not None:
        checks += examine_master(master)
    if as_json:
        print_json(checks)
    else:
        width = max(len(check.name) for check in checks)
        for check in checks:
            verdict = "ok  " if check.ok else "FAIL"
            print(f"{verdict}  {check.name:<{width}}  {one_line(check.found)}")
            if check.remedy:
                print(f"      {'':<{width}}  -> {check.remedy}")
    if not all(check.ok for check in checks):
        raise typer.Exit(FAILED)
