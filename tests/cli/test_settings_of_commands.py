"""Commands take settings alike: the policy's own options, one name for the history."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import penstock
from cli.short_scenario import SCENARIO as SHORT
from penstock.cli.app import app
from penstock.errors import InvalidInput

SCENARIO = str(Path(__file__).parents[2] / "examples/scenarios/overload.toml")
COMMANDS = {
    "run": ("run", "x.py:t"),
    "simulate": ("simulate", SCENARIO),
    "plan": ("plan",),
    "demo": ("demo",),
}


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_policy_option_is_refused_before_anything_starts(command: str) -> None:
    done = CliRunner().invoke(app, [*COMMANDS[command], "--policy-option", "modle=mmk"])
    assert done.exit_code == 2
    assert done.stderr.startswith("penstock: --policy-option modle is not an option of ")
    assert done.stderr.count("\n") == 1
    assert not list(Path.cwd().iterdir())


@pytest.mark.parametrize("command", ["run", "simulate", "demo"])
def test_an_unknown_policy_is_refused_with_those_there_are(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = CliRunner().invoke(app, [*COMMANDS[command], "--policy", "clever"])
    assert done.stderr.startswith("penstock: --policy is 'clever'; allowed: admission-led, ")
    monkeypatch.setenv("PENSTOCK_POLICY", "clever")
    done = CliRunner().invoke(app, [*COMMANDS[command]])
    assert done.stderr.startswith("penstock: PENSTOCK_POLICY is 'clever'; allowed: admission-led, ")


def test_policy_options_change_what_is_decided() -> None:
    def shown(*words: str) -> str:
        return (
            CliRunner()
            .invoke(app, ["simulate", SCENARIO, "--policy", "incremental", *words])
            .stdout
        )

    assert "is above 0.8" in shown()
    assert "is above 0.6" in shown("--policy-option", "max_ratio=0.6")


UNUSED = ("key-groups", "batch-interval", "executor-memory-mb", "channel-rows", "fusion-beta")


@pytest.mark.parametrize("option", UNUSED)
@pytest.mark.parametrize("command", [("simulate", SCENARIO), ("arena", SCENARIO), ("plan",)])
def test_what_a_simulation_has_nothing_of_is_not_offered(
    command: tuple[str, ...], option: str
) -> None:
    done = CliRunner().invoke(app, [*command, f"--{option}", "600"])
    assert done.exit_code == 2
    assert f"No such option: --{option}" in done.stderr


@pytest.mark.parametrize("option", ["history-age", "history-mb"])
def test_how_long_a_history_keeps_is_asked_only_where_one_is_written(option: str) -> None:
    for command in (("arena", SCENARIO), ("plan",)):
        done = CliRunner().invoke(app, [*command, f"--{option}", "4000"])
        assert (done.exit_code, f"--{option}" in done.stderr) == (2, True)
    done = CliRunner().invoke(app, ["simulate", SCENARIO, f"--{option}", "4000"])
    assert done.exit_code == 2
    assert f"--{option} says nothing without --history; give that too." in done.stderr


def test_a_share_that_is_given_is_the_one_that_is_shown(tmp_path: Path) -> None:
    paths = []
    for name in ("a", "b"):
        text = SHORT.replace('"90s"', '"30s"').replace('"short"', f'"{name}"')
        (tmp_path / f"{name}.toml").write_text(text, encoding="utf-8")
        paths.append(str(tmp_path / f"{name}.toml"))
    done = CliRunner().invoke(app, ["simulate", *paths, "--share", "0.9", "--json"])
    assert [one["share"] for one in json.loads(done.stdout)["topologies"]] == [0.9, 0.9]


@pytest.mark.parametrize("given", ["--dry-run", "PENSTOCK_DRY_RUN"])
def test_a_host_refuses_a_dry_run_however_it_is_asked_for(
    given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [given] if given.startswith("--") else []
    if not words:
        monkeypatch.setenv(given, "yes")
    done = CliRunner().invoke(app, ["host", *words])
    assert done.exit_code == 2
    assert "dry-run is for one topology" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(Path.cwd().iterdir())


def test_the_help_of_a_host_does_not_list_what_it_refuses() -> None:
    assert "--dry-run" in CliRunner().invoke(app, ["run", "--help"]).stdout
    assert "--dry-run" not in CliRunner().invoke(app, ["host", "--help"]).stdout


@pytest.mark.parametrize("command", ["simulate", "arena"])
def test_a_schedule_is_held_against_the_executors_of_the_scenario(
    command: str, tmp_path: Path
) -> None:
    paths = {}
    for most in (3, 6):
        paths[most] = str(tmp_path / f"most-{most}.toml")
        text = SHORT.replace('"90s"', '"30s"').replace('"short"', f'"most-{most}"')
        assert "max_executors = 4" in text
        text = text.replace("max_executors = 4", f"max_executors = {most}")
        Path(paths[most]).write_text(text, encoding="utf-8")
    extra = ["--policies", "ds2"] if command == "arena" else []
    words = [*extra, "--schedule", "mon-sun min 6"]
    for given in ([paths[3]], [paths[6], paths[3]]):
        done = CliRunner().invoke(app, [command, *given, *words])
        assert done.exit_code == 2
        assert done.stderr == (
            "penstock: schedule asks for at least 6 executors; max_executors of scenario "
            "'most-3' is 3. See penstock docs options.\n"
        )
    assert CliRunner().invoke(app, [command, paths[6], *words]).exit_code == 0
    least = (
        Path(paths[6])
        .read_text(encoding="utf-8")
        .replace("[cluster]\n", "[cluster]\nmin_executors = 2\n")
    )
    Path(paths[6]).write_text(least, encoding="utf-8")
    done = CliRunner().invoke(app, [command, paths[6], *extra, "--schedule", "max 1"])
    assert "allows at most 1 executors; min_executors of scenario 'most-6' is 2" in done.stderr


def test_rows_of_channels_are_asked_only_where_there_are_channels() -> None:
    done = CliRunner().invoke(app, ["run", "x.py:t", "--channel-rows", "5"])
    assert done.exit_code == 2
    assert "--channel-rows says nothing without --apart; give that too." in done.stderr
    done = CliRunner().invoke(app, ["host", "--channel-rows", "5"])
    assert (done.exit_code, "No such option: --channel-rows" in done.stderr) == (2, True)
    with pytest.raises(InvalidInput, match="channel_rows says nothing without apart=True"):
        penstock.Topology("road", max_latency="5s").start(channel_rows=5)


def test_scenarios_that_share_a_cluster_refuse_a_dry_run() -> None:
    ramp = str(Path(SCENARIO).with_name("ramp.toml"))
    done = CliRunner().invoke(app, ["simulate", SCENARIO, ramp, "--dry-run"])
    assert done.exit_code == 2
    assert "--dry-run is for one scenario" in done.stderr


@pytest.mark.parametrize("command", ["history", "dashboard", "plan"])
def test_a_history_that_is_not_there_is_refused_by_one_name(command: str) -> None:
    done = CliRunner().invoke(app, [command, "--history", "absent.sqlite"])
    assert done.exit_code == 2
    assert "there is no history at absent.sqlite; give another with --history." in done.stderr


def test_documented_commands_use_one_name_for_the_history() -> None:
    root = Path(__file__).parents[2]
    for page in (root / "README.md", *sorted((root / "docs").rglob("*.md"))):
        assert "--db" not in page.read_text(encoding="utf-8"), page.name
