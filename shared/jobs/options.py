"""Options of jobs beyond the table's own policy, as a job carries them from decider to actor."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from shared.errors import InvalidInput
from shared.policy.names import PREFIX
from shared.typed_json import JsonObject


@dataclass(frozen=True, slots=True)
class VacuumOptions(JsonObject):
    """Options of one vacuum.

    with_orphans: list the store for files that no commit names. force: `retain_s` counts although it is below the least
    retention. retain_s: seconds for which removed files stay; None: as the policy says. requested_ms: when a person
    requested it, in milliseconds since 1970: what is removed later than that is history of a later request.
    """

    with_orphans: bool = False
    force: bool = False
    retain_s: int | None = None
    requested_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ClusterOptions(JsonObject):
    """Options of a run on a clustered table.

    force: a person requested it, so it runs whatever share of the bytes is not clustered, and on a table in cells until
    nothing is due. commit_bytes: what a commit brings, where that is known.
    """

    force: bool = False
    commit_bytes: int = 0


@dataclass(frozen=True, slots=True)
class DeduplicateOptions(JsonObject):
    """Options of a removal of older rows.

    since_version: up to which all rows were compared before, so that partitions unchanged since are left out; -1: none
    were. dry_run: count the rows, and change nothing.
    """

    since_version: int = -1
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class ExpiryOptions(JsonObject):
    """Options of a deletion of rows by their age.

    decided_ms: the time of the decision in milliseconds since 1970, at which ages are measured at the latest. dry_run:
    name the files, and change nothing.
    """

    decided_ms: int
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class IndexJobOptions(JsonObject):
    """Options of a run on an index: the revision to optimize and the bytes of one iteration; None: the table's.

    whole_revision: all files of it are rewritten at once, unless it is as compact as it can be.
    strategy: the only way in which files are chosen; None: all that the table allows.
    only_verifies: nothing is written; rows of all files are compared with the blocks that they should be in.
    """

    revision: int | None = None
    budget_bytes: int | None = None
    whole_revision: bool = False
    only_verifies: bool = False
    strategy: str | None = None


PROPERTIES_SET = "changed"
"""Figure of a run after which the table has the properties: how many of them it changed, 0 if all were there."""

ALREADY_SET = "the table has these properties already"


@dataclass(frozen=True, slots=True)
class PropertyOptions(JsonObject):
    """Properties that an ALTER TABLE of ours is to set, by full name; raises InvalidInput for those that are not ours.

    Others may upgrade a table's protocol, and lock its readers out.
    """

    values: Mapping[str, str] = field(hash=False)

    def __post_init__(self) -> None:
        for name in self.values:
            if not name.startswith(PREFIX):
                raise InvalidInput(
                    f"{name} is not a property of Lakewright", field="properties", allowed=f"{PREFIX}..."
                )

    def missing(self, configuration: Mapping[str, str]) -> dict[str, str]:
        """Return the properties that a table with this configuration does not have yet."""
        return {name: value for name, value in self.values.items() if configuration.get(name) != value}
