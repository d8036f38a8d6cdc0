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
    as_json: Annotated[bool, JsonFlag] = False,
) -> None:
    """Check Python, Java, pyspark, ports, memory and disk; exit code 1 if something is wrong."""
    from penstock.spark.cluster.doctor import examine

    checks = examine(with_spark=spark)
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
