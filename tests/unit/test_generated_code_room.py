"""Room for generated code: more than any plan's operators need, in every session of ours."""

import penstock
from penstock.spark.cluster.generated_code import LEAST, SETTING, entries
from penstock.spark.cluster.session import settings

OF_ONE_QUERY = 24  # classes of each of Nexmark's eight queries, as measured


def test_there_is_room_twice_over_however_many_operators() -> None:
    for operators in (1, 8, 40, 41, 200, 1000):
        assert entries(operators) >= 2 * OF_ONE_QUERY * operators


def test_sessions_of_ours_and_those_built_for_attach_have_it() -> None:
    assert settings(8)[SETTING] == str(LEAST)
    assert penstock.session_settings((1, 8))[SETTING] == str(LEAST)
