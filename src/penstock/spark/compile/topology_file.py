"""A topology from a user's file, `FILE.py:name`, or `FILE.py` if it has but one."""

import importlib.util
import sys
from pathlib import Path

from pyspark import cloudpickle

from penstock.errors import InvalidInput
from penstock.model.topology import Topology
from penstock.spark.handles.messages import needs_session, users_line

MODULE = "penstock_user_topology"


def load_topology(spec: str, module: str = MODULE) -> Topology:
    """Run the file and take the topology of that name, or the only one there is.

    Each refusal names what is wrong. Functions of the file are sent to executors by value, as those
    of a script are: executors have no such module. In a program that reads several files, each is a
    `module` of its own.
    """
    path, colon, name = spec.rpartition(":") if ":" in spec else (spec, "", "")
    if not path or (colon and not name.isidentifier()):
        raise InvalidInput(f"{spec!r} names no topology; write FILE.py:NAME, as in road.py:road.")
    file = Path(path)
    if not file.is_file():
        raise InvalidInput(f"{path} is not a file; write FILE.py:NAME.")
    found = importlib.util.spec_from_file_location(module, file)
    if found is None or found.loader is None:
        raise InvalidInput(f"{path} is not a Python file; its name must end in .py.")
    read = importlib.util.module_from_spec(found)
    sys.modules[module] = read
    sys.path.insert(0, str(file.absolute().parent))
    try:
        found.loader.exec_module(read)
    except InvalidInput:
        raise
    except SystemExit as error:
        raise InvalidInput(
            f"{path} ends the program (sys.exit) as it is read; put what a script does under "
            'if __name__ == "__main__".'
        ) from error
    except Exception as error:  # the user's code may raise anything
        where = users_line(error.__traceback__)
        if needs_session(error):
            raise InvalidInput(
                f"{path}{'' if where is None else f', line {where[1]}'}: this needs Spark, which "
                "starts once the file is read; give a function's type as an object "
                "(@F.udf(DoubleType()) for @F.udf('double')), or write this inside an operator's "
                "function."
            ) from error
        at = "" if where is None else f" ({Path(where[0]).name}, line {where[1]})"
        raise InvalidInput(f"{path} failed: {type(error).__name__}: {error}{at}") from error
    finally:
        sys.path.pop(0)
    cloudpickle.register_pickle_by_value(read)  # type: ignore[no-untyped-call]
    return _the_one_meant(
        {k: v for k, v in vars(read).items() if isinstance(v, Topology)}, path, name
    )


def _the_one_meant(found: dict[str, Topology], path: str, name: str) -> Topology:
    if name in found:
        return found[name]
    if not name and len(set(map(id, found.values()))) == 1:
        return next(iter(found.values()))
    if not found:
        raise InvalidInput(f"{path} holds no topology; it needs one, as in road = Topology(...).")
    has = f"it has {', '.join(found)}"
    if name:
        raise InvalidInput(f"{path} has no topology named {name!r}; {has}.")
    raise InvalidInput(f"{path} does not say which topology; write FILE.py:NAME; {has}.")
