"""What Penstock says when it refuses: one sentence, and the exit code that goes with it."""


class PenstockError(Exception):
    """A refusal a person can act on; its message is one sentence."""

    exit_code = 1


class InvalidInput(PenstockError):
    """A document, option or topology is wrong; the sentence names the field and what is allowed."""

    exit_code = 2


class InvalidTopology(InvalidInput):
    """A topology is refused before anything starts."""


class Unavailable(PenstockError):
    """Something outside (Java, a port, a cluster, a Spark handle) is missing or failed."""


class Infeasible(PenstockError):
    """What is asked for is well said and cannot be had."""

    exit_code = 3
