"""Sets properties of a table in one commit of its metadata, as ALTER TABLE does; it makes no snapshot.

Iceberg repeats the change on newer metadata by itself, so appends meanwhile do not stand in its way.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from actor.not_wanted import properties_to_set
from actor.ports import TableJob, TableJobControl, TableJobOutcome
from shared.formats.iceberg.metadata import TableHead
from shared.formats.iceberg.positions import newest_position
from shared.jobs.options import PROPERTIES_SET


class PropertiesTable(Protocol):
    """A table whose properties can be set."""

    def refresh(self) -> TableHead:
        """Read the newest metadata, and return them."""

    def set_properties(self, values: Mapping[str, str]) -> None:
        """Set properties in one commit."""


@dataclass(frozen=True, slots=True)
class IcebergPropertiesJob:
    """One run on one table; `check` raises for a table that must not be touched."""

    table: PropertiesTable
    job: TableJob
    control: TableJobControl
    check: Callable[[TableHead], None]

    def run(self) -> TableJobOutcome:
        """Set the properties that the table does not have yet; raises whatever Iceberg raises."""
        head = self.table.refresh()
        self.check(head)
        version, metadata = newest_position(head).version, head.metadata
        missing = properties_to_set(self.job, version, metadata)
        if isinstance(missing, TableJobOutcome):
            return missing
        self.control.reached("altering")
        self.control.may_change()
        self.table.set_properties(missing)
        return TableJobOutcome(version, metadata, figures={PROPERTIES_SET: len(missing)})
