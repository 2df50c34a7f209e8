"""A Delta log, and the rewrites in it, opened at a location with a meter of the test's own."""

from decider.formats.delta.log import DeltaLog
from decider.formats.delta.rewrites import DeltaRewrites
from decider.storage.object_reads import ObjectReader, ReadMeter
from decider.storage.stores import ObjectStores
from shared.paths.boundary import Boundary
from shared.paths.locations import canonical_location


def open_log(
    location: str, *, meter: ReadMeter, stores: ObjectStores | None = None, boundary: Boundary | None = None
) -> DeltaLog:
    """Open the log of the table at a location; raises InvalidInput if there can be none or an option is unknown."""
    canonical = canonical_location(location)
    return DeltaLog(ObjectReader((stores or ObjectStores()).open(canonical), location=canonical, meter=meter), boundary)


def open_own_commits(location: str, *, meter: ReadMeter, stores: ObjectStores | None = None) -> DeltaRewrites:
    """Open the history of the table at a location; raises InvalidInput if there can be none."""
    canonical = canonical_location(location)
    return DeltaRewrites(ObjectReader((stores or ObjectStores()).open(canonical), location=canonical, meter=meter))
