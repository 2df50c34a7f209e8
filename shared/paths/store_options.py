"""Options of object stores, for all of them, for one kind, or for one bucket; the narrower word wins, option by option.

Decider and actor read tables from the same places, so they read the same options: two settings would drift apart.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

ALL = ""
"""The place that every store lies in."""


HADOOP = "fs."
"""How options begin that are Hadoop's own, meant for the actor alone."""


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """Options by place: `""` for all stores, `s3://` for one kind, `s3://bucket` for one bucket or container.

    Places are spelled as in canonical locations. The options are obstore's (`region`, `endpoint`, `allow_http`).
    """

    by_place: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def of(self, scheme: str, bucket: str = "") -> dict[str, str]:
        """Return what holds for one bucket, or without one what holds for all buckets of a scheme."""
        places = (ALL, f"{scheme}://", f"{scheme}://{bucket}")
        return {name: value for place in places for name, value in self.by_place.get(place, {}).items()}

    def at(self, location: str) -> dict[str, str]:
        """Return what holds at a canonical location for everybody but Hadoop, whose own settings are left out."""
        scheme, _, rest = location.partition("://")
        found = self.of(scheme, rest.partition("/")[0])
        return {name: value for name, value in found.items() if not name.startswith(HADOOP)}

    def buckets(self, scheme: str) -> Mapping[str, Mapping[str, str]]:
        """Return the options of single buckets of a scheme, by the bucket's name."""
        prefix = f"{scheme}://"
        return {
            place.removeprefix(prefix): options
            for place, options in self.by_place.items()
            if place.startswith(prefix) and place != prefix
        }
