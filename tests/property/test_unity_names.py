"""Names of a Unity catalog: no two share a request, and wherever one leads, its state is that of the table there."""

import asyncio
import tempfile
from contextlib import suppress
from itertools import count
from pathlib import Path
from urllib.parse import unquote

from hypothesis import given, settings
from hypothesis import strategies as st

from decider.formats.delta.format import DeltaFormat
from decider.formats.table_format import TableReader
from shared.errors import InvalidInput, OtherTable
from shared.paths.boundary import Boundary
from shared.table import Position, TableMetadata
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
