"""What a source of one's own is written against: see docs/your-own-source.md."""

from penstock.spark.sources.backends.backend import Advance as Advance
from penstock.spark.sources.backends.backend import Backend as Backend
from penstock.spark.sources.backends.backend import Chunk as Chunk
from penstock.spark.sources.backends.backend import Discovered as Discovered
from penstock.spark.sources.backends.backend import Latest as Latest
from penstock.spark.sources.backends.backend import Malformed as Malformed
from penstock.spark.sources.backends.backend import Positions as Positions
from penstock.spark.sources.backends.backend import Ranges as Ranges
from penstock.spark.sources.backends.backend import positions as positions
