"""One location has one spelling: every table location is a canonical URI, encoded and decoded here and nowhere else.

Two spellings of one table would be two tables with two states and two compactions of the same files. And a root
that is compared as a string prefix allows `file:///data-private` to a user of `file:///data`. Who takes which form:
obstore the decoded path (`decoded_path`), Hadoop and Spark the decoded URI (`hadoop_path`), deltalake the canonical
URI (`deltalake_location`). A URI that is taken for a decoded path leads to another folder, `a%20b` instead of `a b`.
"""

import hashlib
import re
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import quote, unquote, unquote_to_bytes

from shared.errors import InvalidInput
from shared.table import TableId

_ALIASES = {
    "file": "file",
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "gs": "gs",
    "gcs": "gs",
    "az": "az",
    "abfs": "abfss",
    "abfss": "abfss",
    "wasb": "abfss",
    "wasbs": "abfss",
    "https": "abfss",
    "memory": "memory",
    "catalog": "catalog",
}
"""Every scheme that is understood, and the one that it is written as; https only for blobs of Azure."""

CATALOG = "catalog://"
"""How the location of a table begins that is known by the name of a catalog, its namespaces and its own name."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_AUTHORITY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(@[A-Za-z0-9._-]+)?")
_BLOB_HOST = re.compile(r"([a-z0-9-]{1,63})\.(?:blob|dfs)\.(core(?:\.[a-z0-9-]+){2,3})")
"""An account of Azure's storage, by either of its two services; the clouds differ in what follows `core`."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")

_PLAIN = "!$&'()*+,;=:@~"
"""Characters of a path segment that RFC 3986 leaves unescaped beside letters, digits and `-._`."""

_ALLOWED = "an absolute path, or a URI with one of the schemes " + ", ".join(sorted(_ALIASES))

MAX_LOCATION_CHARS = 2_048
"""Longer locations are refused: an object key ends at 1,024 bytes, and every event carries one."""

MAX_ENCODINGS = 8
"""Maximum nested encodings of a path that are searched for a `..`; engines write one, and read two at most."""

RECENT_LOCATIONS = 1_024
"""Locations whose canonical form is remembered: each check of a table's place asks for the same five again."""

_SLUG_CHARS = 40
"""Enough of a location to recognise the table in a list; the hash makes it unique."""


def canonical_location(text: str) -> str:
    """Return the one URI for a location, without a final slash: `/x/y/`, `file:/x/y` become `file:///x/y`.

    A path without a scheme is taken literally, whatever its folders are called; in a URI `%20` is a blank, as
    in Delta's logs. Raises InvalidInput for relative paths, `.` and `..` segments, backslashes, and in a URI for
    queries, fragments and hosts where none can be.
    """
    if not text:
        raise _refused(text, "it is empty")
    canonical = _canonical(text) if len(text) <= MAX_LOCATION_CHARS else text
    if len(canonical) > MAX_LOCATION_CHARS:
        raise _refused(
            text[:64], f"it has {len(canonical)} characters, escapes counted; {MAX_LOCATION_CHARS} are accepted"
        )
    return canonical


@lru_cache(maxsize=RECENT_LOCATIONS)
def _canonical(text: str) -> str:
    if text.startswith("/"):
        return "file://" + _path(text, text, is_encoded=False, keeps_empty=False)
    match = _SCHEME.fullmatch(text)
    if match is None:
        raise _refused(text, "it is a relative path")
    scheme = _ALIASES.get(match[1].lower())
    if scheme is None:
        raise _refused(text, f"the scheme {match[1]!r} is not known")
    if scheme in ("file", "memory"):
        return f"{scheme}://" + _path(text, _hostless(text, match[2]), is_encoded=True, keeps_empty=False)
    authority, slash, path = match[2].removeprefix("//").partition("/")
    if scheme == "abfss":
        authority, slash, path = _container(text, authority, slash, path)
    if not match[2].startswith("//") or not _AUTHORITY.fullmatch(authority):
        raise _refused(text, f"it names no bucket or container: {authority!r}")
    return f"{scheme}://{authority}" + _path(text, slash + path, is_encoded=True, keeps_empty=True).rstrip("/")


def key_location(prefix: str, key: str) -> str:
    """Return the canonical location of an object key (raw, not percent-encoded) below a canonical prefix."""
    try:
        escaped = quote(key, safe="/" + _PLAIN)
    except UnicodeEncodeError:
        raise _refused(key, "it is not valid Unicode") from None
    return canonical_location(f"{prefix.rstrip('/')}/{escaped}")


def decoded_path(location: str) -> str:
    """Return the path of a canonical location as the file system or the object store spells it."""
    _, _, rest = location.partition("://")
    return unquote_to_bytes(rest[rest.find("/") :] if "/" in rest else "").decode()


def catalog_name(location: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the catalog of a canonical location and the parts of the name in it, None for any other location."""
    if not location.startswith(CATALOG):
        return None
    catalog = location.removeprefix(CATALOG).partition("/")[0]
    return catalog, tuple(part for part in decoded_path(location).split("/") if part)


def file_location(table: str, path: str) -> str | None:
    """Return the canonical location of the file that a path in the log of the table at `table` means.

    Paths in a log are URIs, encoded by some engines and left raw by others, relative to the table or absolute. None
    where the location is not the same for all engines: a `..` in any number of encodings, an unknown scheme, another
    host.
    """
    decoded = unquote(path)
    is_rooted = path.startswith("/")
    absolute = _SCHEME.fullmatch(path)
    hides = _fully_decoded(decoded)
    if ".." in re.split(r"[/\\]", hides) or path.startswith("//") or decoded.startswith("/") != is_rooted:
        return None
    if absolute is None and _SCHEME.fullmatch(decoded):
        return None
    try:
        if is_rooted:
            return canonical_location(decoded)
        if absolute is not None:
            return canonical_location(f"{absolute[1]}:{quote(unquote(absolute[2]), safe='/' + _PLAIN)}")
        parts = [part for part in decoded.split("/") if part not in ("", ".")]
        return key_location(canonical_location(table), "/".join(parts))
    except InvalidInput:
        return None


def literal_location(table: str, path: str) -> str | None:
    """Return the same for metadata that name files as the store does, as Iceberg's: a percent sign is one."""
    return file_location(table, path.replace("%", "%25"))


def _fully_decoded(path: str) -> str:
    for _ in range(MAX_ENCODINGS):
        further = unquote(path)
        if further == path:
            return path
        path = further
    return ".."  # Only an attempt to hide something encodes a path so often.


def hadoop_path(location: str) -> str:
    """Return the text from which Hadoop's `Path(String)`, and so Spark, makes the path of a location.

    That text is never decoded: `new Path("file:///a%20b")` is the folder `a%20b`.
    """
    canonical = canonical_location(location)
    scheme, _, rest = canonical.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}{decoded_path(canonical)}"


def deltalake_location(location: str) -> str:
    """Return the text from which deltalake makes the place of a table.

    deltalake 1.5.1 decodes it once more when it reads, so that it writes to the folder `a%20b` and reads from `a b`,
    which may be another table. Raises InvalidInput for such a place.
    """
    canonical = canonical_location(location)
    if _ESCAPE.search(decoded_path(canonical)):
        raise _refused(location, "a folder's name has a percent sign with two digits, which deltalake reads as another")
    return canonical


def table_id(location: str) -> TableId:
    """Return the id of the table at a location: a slug of its last two path parts and a hash of the whole."""
    canonical = canonical_location(location)
    parts = [part for part in re.split(r"[/:@]+", unquote(canonical))[1:] if part]
    slug = re.sub(r"[^A-Za-z0-9_]+", "-", "-".join(parts[-2:]))[-_SLUG_CHARS:].strip("-").lower() or "table"
    return TableId(f"{slug}-{hashlib.blake2b(canonical.encode(), digest_size=8).hexdigest()}")


def is_under(location: str, roots: Iterable[str]) -> bool:
    """Return whether a location is one of the roots or lies below one, segment by segment; links are not followed."""
    canonical = canonical_location(location)
    return any(_is_below(canonical, canonical_location(root)) for root in roots)


def _is_below(location: str, root: str) -> bool:
    return location == root or location.startswith(root.rstrip("/") + "/")


def _container(text: str, authority: str, slash: str, path: str) -> tuple[str, str, str]:
    """Return `container@account.dfs…` and the path below it, however a place in Azure's storage is spelled."""
    container, at, host = authority.rpartition("@")
    found = _BLOB_HOST.fullmatch(host.lower())
    if found is None:
        if text.lower().startswith("https:"):
            raise _refused(
                text, "https is understood for blobs of Azure only, as https://account.blob.core.windows.net/c"
            )
        return authority, slash, path
    account = f"{found[1]}.dfs.{found[2]}"
    if at:
        return f"{container}@{account}", slash, path
    container, slash, path = path.partition("/")
    return f"{container}@{account}", slash, path


def _hostless(text: str, rest: str) -> str:
    """Return the path of what follows `file:`, which may name no other host than this one."""
    if not rest.startswith("//"):
        path = rest
    else:
        host, slash, tail = rest[2:].partition("/")
        if host not in ("", "localhost"):
            raise _refused(text, f"{host!r} is a host, and files are read on this one only")
        path = slash + tail
    if not path.startswith("/"):
        raise _refused(text, "it is a relative path")
    return path


def _path(text: str, path: str, *, is_encoded: bool, keeps_empty: bool) -> str:
    """Return the canonical spelling of an absolute path; empty segments vanish only where they mean nothing."""
    if is_encoded and ("?" in path or "#" in path):
        raise _refused(text, "it has a query or a fragment; write these characters as %3F and %23 in a URI")
    inner = path.removeprefix("/").removesuffix("/") if keeps_empty else path.strip("/")
    segments = inner.split("/") if inner else []
    if "" in segments and keeps_empty:
        raise _refused(text, "it has an empty segment, which an object key and a path do not agree on")
    return "/" + "/".join(_segment(text, segment, is_encoded=is_encoded) for segment in segments if segment)


def _segment(text: str, segment: str, *, is_encoded: bool) -> str:
    if is_encoded and _BAD_ESCAPE.search(segment):
        raise _refused(text, "it has a percent sign that starts no escape; write it as %25")
    try:
        raw = unquote_to_bytes(segment).decode() if is_encoded else segment.encode().decode()
    except UnicodeError:
        raise _refused(text, "it is not valid UTF-8") from None
    if raw in (".", ".."):
        raise _refused(text, f"it has a {raw!r} segment")
    if "/" in raw or _CONTROL.search(raw):
        raise _refused(text, "a segment has an escaped slash or a control character")
    if "\\" in raw:
        raise _refused(text, "a segment has a backslash, which deltalake reads as a slash")
    return quote(raw, safe=_PLAIN)


def _refused(text: str, why: str) -> InvalidInput:
    return InvalidInput(f"location {text!r} cannot be used: {why}", field="location", allowed=_ALLOWED)
