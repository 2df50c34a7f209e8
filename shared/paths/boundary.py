"""Where tables and their files may lie: tables below the allowed roots, a table's files below it, links resolved.

The writers of a table choose the paths in its log. A path that leads out of the table, or a link, would make Lakewright
read another user's file with its own credentials and copy it into that table. Decider and actor apply the same rule,
each on its own machine; `real_path` is how that machine resolves links (`os.path.realpath`), which only local files
have.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Self

from shared.errors import Unsupported
from shared.paths.locations import canonical_location, decoded_path, file_location, is_under, literal_location
from shared.table import DataFile

LOG_DIRECTORY = "_delta_log"
ALLOW_EXTERNAL = "LAKEWRIGHT_ALLOW_EXTERNAL_FILES"

SUSPICIOUS_PATH = r"^/|:|\.\.|%2[5eEfF]|%3[aA]|\\"
"""Regular expression of what a path must have to lead anywhere but below its table; almost none does, so that most cost
one search."""

_SUSPICIOUS = re.compile(SUSPICIOUS_PATH)

_PLAIN_REST = re.compile(r"(?:/[A-Za-z0-9_=-][A-Za-z0-9_=.-]*)+")
"""Rest of a path after the location of a table that the file certainly lies below: no escape, colon or `..`."""

_UUID_CHARS = 20
"""Length of the encoded UUID that ends `pathOrInlineDv` of a deletion vector in a file of its own."""


def _as_it_is(path: str) -> str:
    return path


def _none_is(_place: str) -> str:
    return ""


def _each_may_be(_place: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Boundary:
    """Locations that may be read: `roots` are canonical locations, none of them means tables anywhere.

    `allows_external_files`: data files outside of their table are read where they lie below a root. `first_odd`: what
    at or right below a place on this machine is no plain file, for who opens files without asking (`actor.odd_files`).
    `is_link`: whether a place may be a link itself; its folder is none.
    `has_literal_paths`: metadata spell folders and files as the store does, and a percent sign is one.
    """

    roots: tuple[str, ...] = ()
    allows_external_files: bool = False
    real_path: Callable[[str], str] = _as_it_is
    first_odd: Callable[[str], str] = _none_is
    is_link: Callable[[str], bool] = _each_may_be
    has_literal_paths: bool = False

    def for_literal_paths(self) -> Self:
        """Return the same for metadata that name files as the store does, as Iceberg's; logs of Delta hold URIs."""
        return replace(self, has_literal_paths=True)

    def check_table(self, location: str) -> None:
        """Raise Unsupported for a table that lies below a root by its name, and elsewhere by its links.

        Whether a place is below a root by its name is asked when a table is registered. The log must lie in its table.
        """
        canonical = canonical_location(location)
        if not canonical.startswith("file:"):
            return
        real = self._real(canonical)
        if is_under(canonical, self.roots) and not self._is_under_real_root(real):
            raise Unsupported(
                f"{canonical} leads to {real} by a link, which lies outside the allowed roots; add that root to "
                "LAKEWRIGHT_ROOTS, or register the table by its own place",
                field="location",
                allowed=", ".join(self.roots),
            )
        log = canonical_location(self.real_path(f"{decoded_path(canonical)}/{LOG_DIRECTORY}"))
        if not self._may_be_read(real, log):
            raise Unsupported(f"{canonical}: {LOG_DIRECTORY} is a link to {log}, outside of the table", field="path")
        self.check_plain(canonical)

    def check_plain(self, location: str) -> None:
        """Raise Unsupported for a local table that has a pipe, a device or a link where its metadata are read."""
        canonical = canonical_location(location)
        if canonical.startswith("file:"):
            for folder in (LOG_DIRECTORY, f"{LOG_DIRECTORY}/_sidecars", "metadata"):
                self._refuse_odd(canonical, f"{decoded_path(canonical)}/{folder}")

    def _refuse_odd(self, canonical: str, place: str) -> None:
        if problem := self.first_odd(place):
            raise Unsupported(f"{canonical}: {problem}; remove it", field="path")

    def check_files(self, location: str, files: Iterable[DataFile]) -> None:
        """Raise Unsupported if a file, by its path in the log, lies where it may not be read from."""
        place = self.first_external(location, files)
        if place:
            raise Unsupported(
                f"{location}: its metadata name the file {place}, outside of the table, as shallow clones and imported "
                "files do; write the table again as a new one (CREATE TABLE ... AS SELECT), or set "
                f"{ALLOW_EXTERNAL}=true for deciders and actors, which allows files below LAKEWRIGHT_ROOTS",
                field="path",
            )

    def first_external(self, location: str, files: Iterable[DataFile]) -> str:
        """Return the first path of these files that may not be read, empty if there is none."""
        prefixes = _prefixes(location)
        for file in files:
            # What is true for almost every file of every commit: relative paths of Delta, absolute ones of Iceberg.
            if file.dv_id is None and (not _SUSPICIOUS.search(file.path) or _is_plainly_below(prefixes, file.path)):
                continue
            if place := self.external(location, file):
                return place
        return ""

    def external(self, location: str, file: DataFile) -> str:
        """Return the path of a file, or of its deletion vector, that may not be read; empty for the usual file."""
        vector = file.dv_id[1:] if file.dv_id is not None and file.dv_id.startswith("p") else None
        if vector is not None and not self._is_allowed(location, vector):
            return vector
        if _SUSPICIOUS.search(file.path) and not self._is_allowed(location, file.path):
            return file.path
        return ""

    def check_metadata(self, location: str, path: str, folders: Iterable[str]) -> None:
        """Raise Unsupported for a metadata file of a catalog's table that is a local file where it may not be read.

        It has to lie below a root, or in one of `folders`, their links resolved: the table's and its newest metadata's.
        """
        place = self._place(location, path)
        if place is None or (place.startswith("file:") and not self._is_local_metadata(self._real(place), folders)):
            raise Unsupported(
                f"{location}: its metadata name the file {path}, outside of the table and of the allowed roots",
                field="path",
                allowed=", ".join(self.roots),
            )

    def check_links(self, location: str, paths: Iterable[str]) -> None:
        """Raise Unsupported if a file that is about to be read is, or lies behind, a link out of its table.

        The same for one that is no plain file, wherever a link leads.
        """
        canonical = self._folder(location)
        if not canonical.startswith("file:"):
            return
        table = self._real(canonical)
        root, folders = decoded_path(canonical), dict[str, tuple[str, bool]]()
        for path in paths:
            is_plain = _PLAIN_REST.fullmatch(f"/{path}")
            folder, _, name = (f"{root}/{path}" if is_plain else self._local_path(canonical, path)).rpartition("/")
            if not name:
                continue  # `check_files` has refused what it may not be.
            if folder not in folders:
                real = self.real_path(folder)
                folders[folder] = real, self._may_be_read(table, canonical_location(real))
            real_folder, is_readable = folders[folder]
            real = f"{real_folder}/{name}"
            if self.is_link(real):
                real = self.real_path(real)
                is_readable = self._may_be_read(table, canonical_location(real))
            if not is_readable:
                raise Unsupported(
                    f"{canonical}: the file {path} is {canonical_location(real)} by a link, outside of the table, and "
                    "is not read",
                    field="path",
                )
            self._refuse_odd(canonical, real)

    def _local_path(self, canonical: str, path: str) -> str:
        """Return what the file system calls a file of a local table; empty if it is none of this machine's."""
        place = self._place(canonical, path)
        return decoded_path(place) if place is not None and place.startswith("file:") else ""

    def check_not_linked(self, location: str, names: Iterable[str]) -> None:
        """Raise Unsupported if a file that is about to be deleted lies behind a link inside its table.

        `names` are below the table's folder, as the store spells them. Where a link leads does not matter: into the
        table it leads to a file by another name, which may be live.
        """
        canonical = self._folder(location)
        if not canonical.startswith("file:"):
            return
        root = self.real_path(decoded_path(canonical)).rstrip("/")
        for folder in {name.rpartition("/")[0] for name in names}:
            place = f"{root}/{folder}" if folder else root
            if self.real_path(place) != place:
                raise Unsupported(
                    f"{canonical}: the folder {folder} is, or lies behind, a link; no file is deleted there",
                    field="path",
                )

    def _is_allowed(self, location: str, path: str) -> bool:
        place = self._place(location, path)
        return place is not None and (is_under(place, [self._folder(location)]) or self._is_allowed_outside(place))

    def _place(self, location: str, path: str) -> str | None:
        return (literal_location if self.has_literal_paths else file_location)(location, path)

    def _folder(self, location: str) -> str:
        return (self._place(location, location) if self.has_literal_paths else None) or canonical_location(location)

    def _is_allowed_outside(self, place: str) -> bool:
        return self.allows_external_files and is_under(place, self.roots)

    def _may_be_read(self, table: str, real: str) -> bool:
        """Return whether a place, its links resolved, lies in the table, or where files outside of it are allowed."""
        return is_under(real, [table]) or (self.allows_external_files and self._is_under_real_root(real))

    def _is_under_real_root(self, real: str) -> bool:
        return is_under(real, [self._real(root) for root in self.roots if root.startswith("file:")])

    def _is_local_metadata(self, real: str, folders: Iterable[str]) -> bool:
        return is_under(real, folders) or self._is_under_real_root(real)

    def real_folders(self, folders: Iterable[str]) -> tuple[str, ...]:
        """Return the canonical locations of local folders, their links resolved."""
        return tuple(self._real(one) for one in folders if one.startswith("file:"))

    def _real(self, canonical: str) -> str:
        return canonical_location(self.real_path(decoded_path(canonical)))


@lru_cache(maxsize=1_024)
def _prefixes(location: str) -> tuple[str, ...]:
    """Return how absolute paths below a canonical location begin, as engines write them."""
    scheme, _, path = location.partition("://")
    if scheme == "file" and "%" not in path:
        return (location, f"file:{path}", path)
    return (location, f"s3a://{path}") if scheme == "s3" else (location,)


def _is_plainly_below(prefixes: tuple[str, ...], path: str) -> bool:
    """Return whether a path is one of the prefixes and plain names, which is quickly seen; False means nothing."""
    return any(path.startswith(prefix) and _PLAIN_REST.fullmatch(path, len(prefix)) for prefix in prefixes)


def vector_leads_out(path_or_inline: str) -> bool:
    """Return whether the prefix of a deletion vector in a file of its own (storage type `u`) leads out of its table."""
    prefix = path_or_inline[:-_UUID_CHARS]
    return prefix.startswith("/") or ".." in prefix.split("/") or "\\" in prefix
