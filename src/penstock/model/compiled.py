"""What a JVM has compiled of the code that Spark generates."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Compiled:
    """Classes, and the seconds that it took; since a JVM began, or between two moments."""

    classes: int
    time_s: float

    def __sub__(self, before: "Compiled") -> "Compiled":
        return Compiled(self.classes - before.classes, self.time_s - before.time_s)
