"""The options of a run as data: what each is (`option`), all of them (`settings`), and where they
are given (`sources`). Nothing here knows the scaling policies; `control.resolved_settings`, which
does, is the one door through which settings come in."""

from penstock.config.option import Option
from penstock.config.settings import ALLOCATIONS, OPTIONS, Settings
from penstock.config.sources import DEFAULT_FILE

__all__ = ["ALLOCATIONS", "DEFAULT_FILE", "OPTIONS", "Option", "Settings"]
