"""One OPTIMIZE statement, which commits by itself: found by its mark, and its rows are compared."""

from collections.abc import Mapping, Sequence
from typing import Any

from actor.formats.delta.actions import LoggedFile, decode_add, decode_adds, encode, vector_id
from actor.formats.delta.conflicts import CommitFailure, classify, refused
from actor.formats.delta.log import TableLog
from actor.formats.delta.snapshot import paths_condition
from actor.formats.delta.write import json_array, logical_rows
from actor.jvm.errors import first_line
from actor.jvm.scala import Scala
from shared.errors import Corrupt, RetryableError
from shared.locations import hadoop_path
from shared.table import CommitOrigin, FileKey, PartitionColumn

MIN_FILE_SIZE = "spark.databricks.delta.optimize.minFileSize"
"""Setting of a session: files of this size are left alone."""

MAX_FILE_SIZE = "spark.databricks.delta.optimize.maxFileSize"
"""Setting of a session: the size that outputs are to have."""


class OptimizeStatement:
    """Runs OPTIMIZE in a session whose commits carry a job's mark."""

    def __init__(self, scala: Scala, log: TableLog) -> None:
        self._scala = scala
        self._log = log

    def run(self, statement: str, origin: CommitOrigin, before: int) -> int | None:
        """Run a statement; returns its version, above `before`, None if it found nothing to do.

        Raises Conflict where others took the files, RetryableError where the log does not show a commit.
        """
        log = self._log
        try:
            log.session.sql(statement).collect()
        except Exception as error:
            version = log.find_commit(origin, since_version=before)
            if version is not None:
                return version
            if classify(error) is CommitFailure.UNKNOWN:
                raise RetryableError(
                    f"OPTIMIZE of {log.location} failed ({first_line(error)}), and the log does not show job "
                    f"{origin.job}, token {origin.token}; according to the log the table is unchanged"
                ) from error
            raise refused(error, log.location) from error
        return log.find_commit(origin, since_version=before)

    def check_rows(self, before: Any, columns: tuple[PartitionColumn, ...], version: int) -> None:
        """Raise Corrupt if the commit's outputs do not hold as many rows as the files that it removed.

        `before` is the snapshot from before the statement; what others added between the two counts, too.
        """
        log = self._log
        actions = log.actions(version)
        outputs = [_logged(action["add"], columns) for action in actions if "add" in action]
        gone = [action["remove"] for action in actions if "remove" in action]
        paths = sorted({remove["path"] for remove in gone})
        known = {logged.key: logged for logged in decode_adds(log.files(before, paths_condition(paths)), columns)}
        for between in range(int(before.version()) + 1, version):
            added = [_logged(action["add"], columns) for action in log.actions(between) if "add" in action]
            known |= {logged.key: logged for logged in added}
        keys = [FileKey(remove["path"], vector_id(remove.get("deletionVector"))) for remove in gone]
        unknown = [key for key in keys if key not in known]
        inputs = [known[key] for key in keys if key in known]
        expected, written = self._rows(before, inputs), self._rows(before, outputs)
        if unknown or written != expected:
            unknown_text = f" (and of {len(unknown)} files that the log did not hold before)" if unknown else ""
            raise Corrupt(
                f"OPTIMIZE of {log.location} removed {len(gone)} files of {expected} rows{unknown_text} and wrote "
                f"{written} rows. This is committed, as version {version}: check it, and if rows are missing, "
                f"RESTORE TABLE delta.`{hadoop_path(log.location)}` TO VERSION AS OF {version - 1}"
            )

    def _rows(self, snapshot: Any, files: Sequence[LoggedFile]) -> int:
        """Return the rows that readers see by the log's statistics, or by reading the files where one has none."""
        from_log = logical_rows(files)
        if from_log is not None:
            return from_log
        return self._log.rows(snapshot, self._scala.adds(json_array(files)))


def _logged(add: Mapping[str, Any], columns: Sequence[PartitionColumn]) -> LoggedFile:
    return LoggedFile(decode_add(add, columns), encode(add))
