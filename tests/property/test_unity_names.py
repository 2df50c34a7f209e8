"""Names of a Unity catalog: no two share a request, and wherever one leads, its state is that of the table there."""

import asyncio
import tempfile
from contextlib import suppress
from itertools import count
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from hypothesis import given, settings
from hypothesis import strategies as st

from decider.formats.delta.format import DeltaFormat
from decider.formats.table_format import TableReader
from shared.errors import InvalidInput, OtherTable
from shared.partitions import WHOLE_TABLE
from shared.paths.boundary import Boundary
from shared.paths.data_paths import canonical_path
from shared.paths.locations import MAX_LOCATION_CHARS, canonical_location, decoded_path, hadoop_path
from shared.table import DataFile, Position, TableMetadata
from shared.unity.catalog import UnityCatalog
from shared.unity.exchange import UnityAnswer, UnityRequest
from tests.contract.formats.worlds import DeltaWorld, access
from tests.support.examples import examples
from tests.support.unity_server import UnityServer

NAME, PLACE = "main.sales.orders", "catalog://unity/main/sales/orders"


@given(st.tuples(*[st.text("ab./% ü?#", min_size=1, max_size=4)] * 3))
def test_a_request_names_one_table(name: tuple[str, str, str]) -> None:
    paths: list[str] = []

    def send(request: UnityRequest) -> UnityAnswer:
        paths.append(request.path)
        return UnityAnswer(404, b'{"error_code": "TABLE_NOT_FOUND"}')

    with suppress(InvalidInput):
        UnityCatalog("unity", send, Boundary()).table(name)
    if any("." in part for part in name):
        assert paths == [], "a dot would make it the name of another table"
        return
    (path,) = paths
    folder, _, last = path.partition("/")
    assert (folder, unquote(last).split(".")) == ("tables", list(name))
    assert not set(last) & set("/?# ")


class Follower:
    """Follows the table of the name as a decider does: counted once, then commit by commit."""

    def __init__(self, lake: DeltaFormat) -> None:
        self._lake = lake
        self.reader: TableReader = lake.open(PLACE)
        self.sizes: list[int] | None = None
        self._position = Position(-1)
        self._metadata = TableMetadata("")

    def reopen(self) -> None:
        """Let the same process, after its cache was full, or another one go on with the stored state."""
        self.reader = self._lake.open(PLACE)

    async def refresh(self) -> None:
        try:
            if self.sizes is not None:
                async for commit in self.reader.changes(self._position, self._metadata):
                    self.sizes += [file.size_bytes for file in commit.added]
                    for file in commit.removed:
                        self.sizes.remove(file.size_bytes)
                    self._position = Position(commit.version, commit.digest)
                return
        except OtherTable:
            pass
        snapshot = await self.reader.snapshot()
        self.sizes = [file.size_bytes for file in snapshot.files]
        self._position, self._metadata = snapshot.position, snapshot.metadata


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 2)),
        st.tuples(st.just("delete"), st.integers(0, 2)),
        st.tuples(st.just("lead"), st.integers(0, 2)),
        st.tuples(st.sampled_from(["refresh", "reopen"]), st.just(0)),
    ),
    max_size=25,
)


@settings(max_examples=examples(0.6))
@given(STEPS)
def test_the_state_is_that_of_the_table_to_which_the_name_leads(steps: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        server, sizes = UnityServer(), count(1)
        worlds = [DeltaWorld(Path(folder) / f"t{number}") for number in range(3)]
        live: list[list[int]] = [[] for _ in worlds]
        led = 0
        for number, world in enumerate(worlds):
            world.create(f"uuid-{number}")
        follower = Follower(DeltaFormat(access(), {"unity": server.catalog(Path(folder).as_uri())}))
        for step, which in [*steps, ("refresh", 0)]:
            match step:
                case "append":
                    size = next(sizes)
                    worlds[which].append([size])
                    live[which].append(size)
                case "delete" if live[which]:
                    worlds[which].delete()
                    live[which].pop(0)
                case "lead":
                    led = which
                case "reopen":
                    follower.reopen()
                case "refresh":
                    server.put(NAME, worlds[led].path.as_uri(), f"id-{led}")
                    asyncio.run(follower.refresh())
                    assert sorted(follower.sizes or []) == sorted(live[led])


PATHS = st.text("ab %20+#?ü/u\u0308.", min_size=1, max_size=6).map(
    lambda text: "/" + "/".join(f"x{part}" for part in text.split("/") if part)
)
"""Paths that differ by little: a blank, its escape, a literal escape of the escape, NFC and NFD."""


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/\\"), min_size=1), min_size=1)
)
def test_a_path_survives_its_own_canonical_form(segments: list[str]) -> None:
    """Whatever a directory is called, its URI leads back to it, by every way in which it is handed on."""
    path = "/" + "/".join(f"x{segment}" for segment in segments)
    if len(quote(path)) <= MAX_LOCATION_CHARS - len("file://"):
        canonical = canonical_location(path)
        assert decoded_path(canonical) == path
        assert canonical_location(canonical) == canonical
        assert canonical_location(path + "/") == canonical
        assert unquote(urlsplit(canonical).path) == path
        assert hadoop_path(canonical) == hadoop_path(path) == f"file://{path}"


@given(PATHS, PATHS)
def test_two_paths_are_one_location_only_if_they_are_one_path(one: str, other: str) -> None:
    """`a b` and `a%20b`, composed and decomposed letters: what a file system distinguishes, nothing here may join."""
    assert (canonical_location(one) == canonical_location(other)) == (one == other)
    assert (hadoop_path(one) == hadoop_path(other)) == (one == other)


@given(st.text(st.sampled_from("aA/.:%3dD fileS"), min_size=1, max_size=20))
def test_a_canonical_path_is_its_own_canonical_path(path: str) -> None:
    assert canonical_path(canonical_path(path)) == canonical_path(path)


TABLES = ("/lake/t", "file:/lake/a b", "file:///lake/a%20b", "s3://bucket/t", "s3a://bucket/a%20b/t", "gs://b/t", "/")
BEGINNINGS = (
    *("/lake/t", "file:/lake/t", "file:///lake/t", "file:////lake/t", "FILE:/lake/t", "/lake/a b", "/lake/a%20b", ""),
    *("file:/lake/a%20b", "s3://bucket/t", "s3a://bucket/t", "s3n://bucket/t", "s3://bucket/a%20b/t", "gs://b/t", "//"),
)
NAMES = ("data", "p=1", "..", ".", "", "2", "x.parquet", "x..y", ".hidden", "%2e%2e", "%2Fx", "a:b", "\\x")


@given(
    st.sampled_from(TABLES),
    st.sampled_from(BEGINNINGS),
    st.lists(st.sampled_from(NAMES), max_size=4).map("/".join),
    st.booleans(),
)
def test_first_external_is_the_rule_for_each_file(table: str, beginning: str, rest: str, slash: bool) -> None:
    location, path = canonical_location(table), beginning + "/" * slash + rest
    file, boundary = DataFile(path, 1, WHOLE_TABLE), Boundary()
    assert boundary.first_external(location, [file]) == boundary.external(location, file)
