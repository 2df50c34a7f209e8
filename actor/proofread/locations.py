"""Where files are, as a reader opens them, and how metadata spell the same place in other ways."""

import re

from actor.proofread.model import CannotRead

_LOCAL = re.compile(r"^file:/+")
_S3 = re.compile(r"^s3[an]://")
_PATTERN = re.compile(r"[*?\[]")


def place_of(location: str) -> str:
    """Return one spelling for a location: an absolute path, or an address of an object store (`s3://`)."""
    return _S3.sub("s3://", _LOCAL.sub("/", location))


def is_local(location: str) -> bool:
    """Return whether a file lies on a disk of this machine."""
    return "://" not in place_of(location)


def readable(location: str) -> str:
    """Return the place that DuckDB opens; raises CannotRead for stores and names that it cannot address."""
    place = place_of(location)
    if is_local(place):
        return place
    if not place.startswith("s3://"):
        raise CannotRead(f"no reader for files at {place.partition('://')[0]}://")
    if _PATTERN.search(place):
        raise CannotRead("an object's name has a character that DuckDB takes for a pattern (*, ?, [)")
    return place


SPELLED_AS_PLACE = r"regexp_replace(regexp_replace({0}, '^file:/+', '/'), '^s3[an]://', 's3://')"
"""`place_of` in SQL."""


def is_parquet(location: str) -> bool:
    """Return False for a file whose name says that it has another format, which DuckDB does not read.

    Iceberg's writers name files after their format, and a table may ask for another one by default.
    """
    return not location.endswith((".orc", ".avro"))
