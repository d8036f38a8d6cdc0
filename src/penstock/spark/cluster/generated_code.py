"""How many classes of generated code a JVM keeps, by what it runs."""

SETTING = "spark.sql.codegen.cache.maxEntries"  # static: of sessions that are still to be built
SPARKS_OWN = 100
# Eight queries of Nexmark compile 24 classes each, and some for watermarks that are never needed
# again. So this is enough for 40 operators, with as much again for what is out of date.
LEAST = 2000
FOR_EACH_OPERATOR = 50


def entries(operators: int = 0) -> int:
    """Room for all that the operators of a topology need, and for what a few more do.

    >>> entries(12), entries(100)
    (2000, 5000)
    """
    return max(LEAST, FOR_EACH_OPERATOR * operators)


def code_settings(operators: int = 0) -> dict[str, str]:
    """The setting of a session that is to run so many operators."""
    return {SETTING: str(entries(operators))}
