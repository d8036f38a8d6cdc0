"""Numbers as people read them; a dash where there is none."""

import math


def seconds_text(seconds: float) -> str:
    """A latency for a person; a dash where there was none.

    >>> seconds_text(2.0), seconds_text(math.nan)
    ('2.00 s', '-')
    """
    return "-" if math.isnan(seconds) else f"{seconds:.2f} s"


def share_text(share: float) -> str:
    """A share for a person; a dash where there was nothing to have a share of.

    >>> share_text(0.9871), share_text(math.nan)
    ('98.7%', '-')
    """
    return "-" if math.isnan(share) else f"{share:.1%}"
