"""Sets properties of a table by one ALTER TABLE of Spark's, so that Delta itself checks features and protocol.

The statement is the owner's own: it replaces the metadata, and with that Delta aborts every other transaction that is
open. So it is never run for properties that the table has already, and only while the properties that the request was
decided by are still there.
"""

from dataclasses import dataclass

from actor.formats.delta.conflicts import classify, refused
from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.log import TableLog
from actor.formats.delta.preflight import check_table
from actor.jvm.errors import first_line
from actor.jvm.sessions import Sessions
from actor.not_wanted import properties_to_set
from actor.ports import TableJob, TableJobControl, TableJobOutcome
from actor.rewrite.checks import check_identity
from actor.rewrite.model import Verdict
from shared.errors import RetryableError
from shared.formats.delta import FORMAT
from shared.jobs.options import PROPERTIES_SET
from shared.paths.locations import hadoop_path
from shared.paths.sql_text import set_properties


@dataclass(slots=True)
class PropertiesJob:
    """One run on one table."""

    scala: DeltaScala
    sessions: Sessions
    job: TableJob
    control: TableJobControl

    def run(self) -> TableJobOutcome:
        """Set the properties that the table does not have yet.

        Raises OtherTable or Unsupported for a table that must not be touched, Conflict where another writer changed the
        metadata at this moment, RetryableError where the log does not show the statement's commit.
        """
        origin = self.job.origin
        lease = self.sessions.lease(tag=origin.job, user_metadata=self.job.mark().encode())
        with lease as owned, self.sessions.bound(owned) as session:
            log = TableLog(self.scala, session, self.job.location)
            snapshot = log.snapshot()
            version, shape = int(snapshot.version()), log.shape(snapshot)
            metadata = shape.metadata
            check_identity(self.job.location, metadata, self.job.table_uuid)
            check_table(self.job.location, metadata, shape.protocol, self.job.kind)
            missing = properties_to_set(self.job, version, metadata)
            if isinstance(missing, TableJobOutcome):
                return missing
            self.control.reached("altering")
            self.control.may_change()
            committed = self._alter(log, set_properties(hadoop_path(log.location), missing, FORMAT), version)
        return TableJobOutcome(version, metadata, (committed,), {PROPERTIES_SET: len(missing)})

    def _alter(self, log: TableLog, statement: str, before: int) -> int:
        """Run the statement; returns its version."""
        failure: Exception | None = None
        try:
            log.session.sql(statement).collect()
        except Exception as error:  # noqa: BLE001 - the log knows whether it was committed
            failure = error
        version = log.find_commit(self.job.origin, since_version=before)
        if version is not None:
            return version
        if failure is not None and classify(failure) is not Verdict.UNKNOWN:
            raise refused(failure, log.location) from failure
        why = "" if failure is None else f" ({first_line(failure)})"
        raise RetryableError(f"{log.location}: the log shows no commit of the ALTER TABLE{why}") from failure
