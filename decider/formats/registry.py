"""The table formats of this process: the one place that picks a format for a table, and the one that lists them all.

A table's format is found by probing its location when the table is first read, and again when it is no longer there: a
table of another format may have taken its place. With a single format nothing is probed.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from decider.formats.delta.format import DeltaFormat
from decider.formats.forwarding import ForwardingReader
from decider.formats.iceberg.table import IcebergFormat, IcebergSettings
from decider.formats.rewrites import RewritePage
from decider.formats.scanner import CatalogScanner, TableScanner, has_table
from decider.formats.table_format import (
    MAX_SCANNED,
    RewriteReader,
    StorageAccess,
    TableFormat,
    TableReader,
)
from shared.errors import InvalidInput, NoTable
from shared.formats.options import FormatOptions
from shared.paths.locations import canonical_location, catalog_name
from shared.refusals import Refusal
from shared.table import TableMetadata, TableProtocol

R = TypeVar("R")


class TableFormats:
    """Opens tables of several formats; the first one that recognizes a location reads it."""

    def __init__(self, access: StorageAccess, formats: Sequence[TableFormat]) -> None:
        names = [one.name for one in formats]
        if not names or len(set(names)) < len(names):
            raise InvalidInput(f"table formats {names}: expected at least one, each with a name of its own")
        self.access = access
        self._formats = tuple(formats)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the formats, in the order in which they are probed."""
        return tuple(one.name for one in self._formats)

    def named(self, name: str) -> TableFormat:
        """Return a format by name; raises InvalidInput for one that is not registered."""
        for one in self._formats:
            if one.name == name:
                return one
        raise InvalidInput(f"table format {name!r} is unknown", field="format", allowed=", ".join(self.names))

    async def find(self, location: str) -> TableFormat | None:
        """Return the format of the table at a canonical location, None if there is no table."""
        named = catalog_name(location)
        if named is not None:
            found = [one for one in self._formats if await has_table(one, *named)]
            return found[0] if found else None
        place = self.access.reader(location)
        for one in self._formats:
            if await one.probe(place):
                return one
        return None

    def open(self, location: str) -> TableReader:
        """Open the table at a location; raises InvalidInput if none can be there, NoTable without its directory."""
        canonical = canonical_location(location)
        return self._formats[0].open(canonical) if len(self._formats) == 1 else _ProbedTable(self, canonical)

    def rewrites(self, location: str) -> RewriteReader:
        """Open the history of our rewrites of a table; raises what `open` raises."""
        canonical = canonical_location(location)
        return self._formats[0].rewrites(canonical) if len(self._formats) == 1 else _ProbedRewrites(self, canonical)

    def scanner(self, root: str) -> TableScanner | CatalogScanner:
        """Open a root below which tables are searched; raises what `open` raises."""
        canonical = canonical_location(root)
        if catalog_name(canonical) is not None:
            return CatalogScanner(self._formats, location=canonical)
        return TableScanner(self.access, self._formats, location=canonical)


class _ProbedTable(ForwardingReader):
    """Finds out by probing which format's reader it passes calls to."""

    def __init__(self, formats: TableFormats, location: str) -> None:
        self._formats = formats
        self._reader: TableReader | None = None
        self.location = location

    @property
    def checks_history(self) -> bool:
        """Return what its reader says, False until that was found."""
        return self._reader is not None and self._reader.checks_history

    async def _found(self, *, is_newest: bool = False) -> TableReader:  # noqa: ARG002 - a format stays until it is gone
        if self._reader is None:
            found = await self._formats.find(self.location)
            if found is None:
                names = ", ".join(self._formats.names)
                raise NoTable(f"{self.location}: there is no table", field="location", allowed=f"a table of {names}")
            self._reader = found.open(self.location)
        return self._reader

    async def _read(self, read: Callable[[TableReader], Awaitable[R]], *, is_newest: bool) -> R:
        """Read, and probe once more if the table is gone: one of another format may have taken its place."""
        try:
            return await super()._read(read, is_newest=is_newest)
        except NoTable:
            self._reader = None
            return await super()._read(read, is_newest=is_newest)

    def refusal(self, metadata: TableMetadata, protocol: TableProtocol) -> Refusal | None:
        return self._formats.named(metadata.format).open(self.location).refusal(metadata, protocol)


class _ProbedRewrites:
    """`RewriteReader` that finds out by probing which format's reader it passes calls to."""

    def __init__(self, formats: TableFormats, location: str) -> None:
        self._formats = formats
        self.location = location

    async def page(self, *, limit: int, before: int | None = None, max_scanned: int = MAX_SCANNED) -> RewritePage:
        found = await self._formats.find(self.location)
        if found is None:
            raise NoTable(f"{self.location}: there is no table", field="location")
        return await found.rewrites(self.location).page(limit=limit, before=before, max_scanned=max_scanned)


def table_formats(access: StorageAccess, options: FormatOptions | None = None) -> TableFormats:
    """Return every format that this release reads under these options."""
    options = options or FormatOptions()
    formats: list[TableFormat] = [DeltaFormat(access, options.unity)]
    if options.has_iceberg:
        formats.append(IcebergFormat(access, IcebergSettings(options.iceberg_catalogs, options.iceberg_folders)))
    return TableFormats(access, formats)
