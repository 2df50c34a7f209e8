"""A failing store fails with an error that shows whether to try again, and every request is counted."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from obstore import exceptions
from obstore.exceptions import GenericError, PermissionDeniedError
from obstore.store import MemoryStore

from decider.storage import object_reads
from decider.storage.object_reads import LIST_PAGE, ObjectReader, ReadKind, ReadMeter, storage_failure
from decider.storage.stores import ObjectStores, RootedStore
from shared.errors import InvalidInput, PermanentError, RetryableError
from shared.paths.store_options import StoreOptions
from tests.support.delta_tables import open_log
from tests.support.failure_classes import OF_OBSTORE


class Failing:
    """A store that answers every request with one error."""

    def __init__(self, problem: Exception) -> None:
        self.problem = problem

    async def get_async(self, _key: str) -> Any:
        """Fail."""
        raise self.problem

    def list(self, *_: object, **__: object) -> Any:
        """Fail."""
        raise self.problem


def reader(store: Any, meter: ReadMeter | None = None) -> ObjectReader:
    place = store if isinstance(store, RootedStore) else RootedStore(store)
    return ObjectReader(place, location="s3://b/t", meter=meter or ReadMeter())


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (GenericError("connection reset\n\nDebug source: x"), RetryableError),
        (OSError("host unreachable"), RetryableError),
        (PermissionDeniedError("403"), PermanentError),
    ],
)
def test_a_store_that_fails_says_whether_to_try_again(problem: Exception, expected: type[Exception]) -> None:
    meter = ReadMeter()
    with pytest.raises(expected, match="s3://b/t: cannot read k: ") as failure:
        asyncio.run(reader(Failing(problem), meter).get("k"))
    assert "Debug" not in str(failure.value)
    with pytest.raises(expected, match="s3://b/t: cannot list p: "):
        asyncio.run(reader(Failing(problem), meter).list("p"))
    assert meter.counts == {ReadKind.GET: 1, ReadKind.LIST: 1}


class Hanging:
    """A store that never answers."""

    async def _never(self) -> Any:
        await asyncio.Event().wait()

    async def list(self, *_: object, **__: object) -> AsyncGenerator[Any, None]:
        """Yield nothing, ever."""
        yield await self._never()

    async def list_with_delimiter_async(self, *_: object) -> Any:
        """Answer never."""
        await self._never()

    get_async = get_range_async = list_with_delimiter_async


@pytest.mark.parametrize("call", ["get", "list", "entries", "first_names", "folders"])
def test_a_store_that_never_answers_is_given_up_and_tried_again_later(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_reads, "READ_DEADLINE_S", 0.01)
    with pytest.raises(RetryableError, match="no answer in time"):
        asyncio.run(getattr(reader(Hanging()), call)("p"))


def test_an_object_that_is_not_there_is_none_and_a_request_all_the_same() -> None:
    meter = ReadMeter()
    assert asyncio.run(reader(MemoryStore(), meter).get("k")) is None
    for call in ("list", "entries", "first_names"):
        assert list(asyncio.run(getattr(reader(MemoryStore(), meter), call)("p"))) == []
    assert meter.counts == {ReadKind.GET: 1, ReadKind.LIST: 3}


def test_a_listing_is_sorted_bounded_by_the_prefix_and_counted_by_page() -> None:
    store = MemoryStore()
    for number in range(LIST_PAGE + 1):
        store.put(f"p/{number:05d}", b"")
    store.put("pq/x", b"")
    meter = ReadMeter()
    names = asyncio.run(reader(store, meter).list("p"))
    assert names == [f"{number:05d}" for number in range(LIST_PAGE + 1)]
    assert meter.counts == {ReadKind.LIST: 2}
    assert asyncio.run(reader(store).list("p", after="00999")) == ["01000"]


def test_a_directory_that_does_not_exist_is_refused_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"there is no directory at file:///.*/gone"):
        open_log(str(tmp_path / "gone"), meter=ReadMeter())


@pytest.mark.parametrize(
    ("directory", "in_uri"), [("a b", "a%20b"), ("50%", "50%25"), ("%20", "%2520"), ("ü=1", "%C3%BC=1")]
)
def test_a_local_directory_is_found_whatever_it_is_called(tmp_path: Path, directory: str, in_uri: str) -> None:
    (tmp_path / directory / "_delta_log").mkdir(parents=True)
    (tmp_path / directory / "_delta_log" / "x").write_bytes(b"!")
    for location in (str(tmp_path / directory), f"file://{tmp_path}/{in_uri}"):
        assert asyncio.run(reader(ObjectStores().open(location)).get("_delta_log/x")) == b"!"


def test_a_store_of_objects_is_rooted_at_the_decoded_prefix() -> None:
    options = {"aws_region": "eu-central-1", "endpoint": "http://127.0.0.1:9", "allow_http": "true", "timeout": "5s"}
    # The environment would be asked for these, and deltalake leaves keys there.
    options |= {"access_key_id": "key", "secret_access_key": "secret"}
    stores = ObjectStores(StoreOptions({"": options}))
    place = stores.open("s3a://lake/a%20b/x%2520y/")
    assert place.key("_delta_log") == "a b/x%20y/_delta_log"
    assert stores.open("s3://lake").key("_delta_log") == "_delta_log"
    assert stores.open("s3n://lake/other").client is place.client, "one client for all tables of a bucket"


@pytest.mark.parametrize(
    ("location", "options"),
    [
        ("s3://b/t", {"regoin": "x"}),
        ("az://c/t", {}),
        ("s3://b/t", {"timeout": "soon"}),
        ("s3://b/t", {"allow_http": "maybe"}),
    ],
)
def test_an_option_that_cannot_be_meant_is_refused(location: str, options: dict[str, str]) -> None:
    with pytest.raises(
        InvalidInput, match=f"no store can be opened for {location.removesuffix('/t')}: .* LAKEWRIGHT_STORE_OPTIONS"
    ) as refusal:
        ObjectStores(StoreOptions({"": options})).open(location)
    assert refusal.value.field == "options"


class Vanishing:
    """A store whose folder goes away while it is listed, after some pages."""

    def __init__(self, pages: int) -> None:
        self.pages = pages

    async def list(self, *_: object, **__: object) -> Any:
        """Yield pages, then fail."""
        for _page in range(self.pages):
            yield []
        raise FileNotFoundError("gone")


def test_a_folder_that_goes_away_while_it_is_listed_is_no_empty_folder() -> None:
    assert asyncio.run(reader(Vanishing(0)).entries("p")) == []
    with pytest.raises(RetryableError, match="cannot list p: gone"):
        asyncio.run(reader(Vanishing(1)).entries("p"))


def test_every_exception_of_the_client_is_judged_as_its_table_says() -> None:
    """A new release that adds one fails here."""
    kinds = {name: kind for name, kind in vars(exceptions).items() if isinstance(kind, type)}
    found = {name: type(storage_failure("s3://b/t", "read f", kind("no"))) for name, kind in kinds.items()}
    assert found == {name: meant for meant, names in OF_OBSTORE.items() for name in names.split()}
