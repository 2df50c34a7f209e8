"""By which files a folder is known to be a table, of whatever system: no orphan search deletes files of another one.

Systems share folders: metadata of one format are generated beside another's, and tables are created in folders
of tables. What the other system needs, its metadata alone show, and these are not read here.
"""

import re
from collections.abc import Iterable, Mapping

from shared.paths.boundary import LOG_DIRECTORY

UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
"""A part of the names of files that nearly all writers of tables choose, in a regular expression."""

ICEBERG, DELTA, PAIMON = "Apache Iceberg", "Delta Lake", "Apache Paimon"

NO_ORPHANS = "no orphans are searched for"
"""Text before the reason in reports."""

_MARKS: Mapping[str, str] = {
    ICEBERG: r"metadata/(?:[^/]+\.metadata\.json(?:\.gz)?|version-hint\.text)",
    DELTA: rf"{LOG_DIRECTORY}/.*",
    PAIMON: r"(?:snapshot/(?:snapshot-\d+|LATEST|EARLIEST)|schema/schema-\d+)",
    "Apache Hudi": r"(?:\.hoodie/.*|\.hoodie_partition_metadata(?:\.[^/]+)?)",
    "Lance": r"(?:_versions/[^/]+\.manifest|_transactions/[^/]+\.txn|_latest\.manifest)",
    "Apache CarbonData": r"(?:Metadata/schema|Metadata/tablestatus|Fact/Part0/.*)",
}
"""Names of files below the folder of a table, by its system."""

_TABLE = re.compile("(|.*?/)(?:" + "|".join(f"({pattern})" for pattern in _MARKS.values()) + ")", re.DOTALL | re.ASCII)
_SYSTEMS = tuple(_MARKS)


def tables_of_others(names: Iterable[str], own: str) -> dict[str, str]:
    """Return the system of each folder that is another table, by the names of all files below a table's folder.

    A folder has a final slash; the table's own is empty, and only marks of another system than `own` are found in it.
    """
    found: dict[str, str] = {}
    for name in names:
        match = _TABLE.fullmatch(name)
        if match is None:
            continue
        system = _SYSTEMS[(match.lastindex or 2) - 2]
        if match[1] or system != own:
            found.setdefault(match[1], system)
    return found


def shared_folder(system: str) -> str:
    """Return why a folder that is a table of this system, too, has no orphans."""
    return f"the folder is that of a table of {system}, too, which may need any file"


def left_out_note(left_out: str, unrecognized: int) -> str:
    """Return as sentences what a vacuum leaves: why, and how many listed files it does not recognize as the table's."""
    reasons = [left_out] if left_out else []
    if unrecognized:
        reasons.append(f"{unrecognized} files are not recognized as the table's, and stay")
    return " ".join(f"{reason[0].upper()}{reason[1:]}." for reason in reasons)
