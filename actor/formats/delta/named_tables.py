"""Tables that are known by their names in Unity catalogs: the engine gets the place at which such a table lies.

A job has the name, and each call looks it up again, by the rules by which the decider did: a table that moved, or that
is not served any more, is not rewritten at the place where it was. That the table there is the one that was decided on
shows its own id, which the engine compares. Files are read and written with the actor's own credentials.
"""

from collections.abc import Mapping
from dataclasses import replace

from actor.ports import (
    Control,
    EngineDeath,
    LivePartition,
    RewriteOutcome,
    RewriteRequest,
    TableEngine,
    TableJob,
    TableJobControl,
    TableJobOutcome,
)
from shared.table import PartitionKey
from shared.unity.catalog import UnityCatalog, find_catalog


class NamedTables:
    """`actor.ports.TableEngine` that passes every call to another engine, with the place of the table."""

    def __init__(self, engine: TableEngine, catalogs: Mapping[str, UnityCatalog]) -> None:
        self._engine = engine
        self._catalogs = catalogs
        self.format = engine.format
        self.table_kinds = engine.table_kinds

    def read_partition(self, location: str, partition: PartitionKey, *, table_uuid: str = "") -> LivePartition:
        """Look the table up and read it."""
        return self._engine.read_partition(self._place(location), partition, table_uuid=table_uuid)

    def rewrite(self, request: RewriteRequest, control: Control) -> RewriteOutcome:
        """Look the table up and rewrite it there."""
        return self._engine.rewrite(replace(request, location=self._place(request.location)), control)

    def run_table_job(self, job: TableJob, control: TableJobControl) -> TableJobOutcome:
        """Look the table up and run the job there."""
        return self._engine.run_table_job(replace(job, location=self._place(job.location)), control)

    def find_commit(self, location: str, *, job: str, token: int, since_version: int) -> int | None:
        """Look the table up and search its log."""
        return self._engine.find_commit(self._place(location), job=job, token=token, since_version=since_version)

    def is_alive(self) -> bool:
        """Return whether the other engine can work."""
        return self._engine.is_alive()

    def terminate(self) -> EngineDeath | None:
        """End the other engine."""
        return self._engine.terminate()

    def cancel(self, job: str) -> None:
        """End the rewrite of this job."""
        self._engine.cancel(job)

    def _place(self, location: str) -> str:
        found = find_catalog(location, self._catalogs)
        if found is None:
            return location
        catalog, name = found
        return catalog.table(name).storage_location
