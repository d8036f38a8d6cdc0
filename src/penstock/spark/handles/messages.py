"""What Spark's exceptions say, in one sentence, and where in the user's code they came from."""

import re
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import pyspark
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from penstock.model.user_code import is_users

SPARK_ERRORS = (PySparkException, Py4JError)  # whatever Spark may raise in the driver

_OURS = re.compile(r"^penstock\.errors\.\w+: (.+)$", re.MULTILINE)
_TRACE = "Traceback (most recent call last):"
_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+)', re.MULTILINE)
# The first line below a trace that is not indented: the exception that ended it.
_RAISED = re.compile(r"^(?P<kind>[A-Za-z_][\w.]*)(?:: (?P<said>.*))?$", re.MULTILINE)
# What Spark adds to an error of its own: the line of a script, or the text of a query.
_CALLED_FROM = re.compile(r'^".*" was called from\n(?P<file>.+):(?P<line>\d+)$', re.MULTILINE)
_SQL = re.compile(r"^== SQL .*==\n(?P<text>.+)$", re.MULTILINE)
# py4j tells in its first line which call failed, and in the second what the JVM raised.
_CALLING = "An error occurred while calling"
_OF_JAVA = re.compile(r"^: (?:[\w.$]+\.)?(?P<said>\w+: .+)$", re.MULTILINE)
_OF_SPARK = re.compile(r"^.*?(?P<said>\[[A-Z][A-Z0-9_.]+\] .*)$", re.MULTILINE)
# What says that something failed, and not what.
_ENGINES_OWN = (
    "[PYTHON_EXCEPTION]", "[STREAM_FAILED]", "[FOREACH_BATCH_USER_FUNCTION_ERROR]", "Job aborted",
)  # fmt: skip
_PYSPARK = str(Path(pyspark.__file__).parent)


@dataclass(frozen=True)
class Failure:
    """What an exception says, and the user's own line that it came from, as far as it is known."""

    said: str
    file: str | None = None
    line: int | None = None
    sql: str | None = None  # the line of a query in which Spark found the mistake

    def __str__(self) -> str:
        if self.file is None:
            return self.said
        return f"{self.said.rstrip('.')} ({Path(self.file).name}, line {self.line})"


def first_line(error: BaseException) -> str:
    """What an exception says, without its stack or plan; of a worker's, what was said there."""
    return str(failure_of(error))


def failure_of(error: BaseException) -> Failure:
    """What an exception says: of a user's function in a worker, the exception raised there."""
    text = str(error)
    if not isinstance(error, PySparkException):
        of_java = _OF_JAVA.search(text) if text.startswith(_CALLING) else None
        said = of_java["said"] if of_java is not None else f"{type(error).__name__}: {error}"
        said = said.strip().splitlines()[0].rstrip(": ")
        return Failure(said, *(users_line(error.__traceback__) or (None, None)))
    ours = _OURS.search(text)
    if ours is not None or _TRACE in text:
        said = ours.group(1) if ours is not None else _raised(text)
        frames_of_worker = [(m["file"], int(m["line"])) for m in _FRAME.finditer(text)]
        return Failure(said, *(_innermost(frames_of_worker) or (None, None)))
    sql, called = _SQL.search(text), _CALLED_FROM.search(text)
    file, line = (called["file"], int(called["line"])) if called is not None else (None, None)
    return Failure(_of_spark(error, text), file, line, sql["text"].strip() if sql else None)


def _raised(text: str) -> str:
    """The exception below the last trace of a text, with the first line of what it says."""
    below = text.rpartition(_TRACE)[2]
    found = _RAISED.search(below)
    if found is None:
        return "a Python function failed"
    kind = found["kind"].rpartition(".")[2]
    return f"{kind}: {found['said']}" if found["said"] else kind


def _of_spark(error: PySparkException, text: str) -> str:
    """The innermost error of Spark's in a text; what wraps it says only that something failed."""
    first = ((error.getMessage() or text).strip() or type(error).__name__).splitlines()[0]
    if not first.startswith(_ENGINES_OWN):
        return first
    causes = [m["said"].strip() for m in _OF_SPARK.finditer(text)]
    return next((one for one in reversed(causes) if not one.startswith(_ENGINES_OWN)), first)


def users_line(trace: TracebackType | None) -> tuple[str, int] | None:
    """The user's own line in a trace, as file and line; None if it has none."""
    return _innermost([(one.filename, one.lineno or 0) for one in traceback.extract_tb(trace)])


def _innermost(frames: list[tuple[str, int]]) -> tuple[str, int] | None:
    """The innermost frame that is in none of the packages installed."""
    return next((one for one in reversed(frames) if is_users(one[0])), None)


def needs_session(error: BaseException) -> bool:
    """Whether something of Spark's was called that needs a session, and there is none."""
    if isinstance(error, PySparkException):
        return error.getCondition() == "SESSION_OR_CONTEXT_NOT_EXISTS"
    frames = traceback.extract_tb(error.__traceback__)
    of_spark = bool(frames) and frames[-1].filename.startswith(_PYSPARK)
    return of_spark and isinstance(error, AssertionError) and not str(error)
