"""The saved registry in an object store that does not keep its word."""

import asyncio
from collections.abc import Iterator

import pytest

from decider.storage.numbered_objects import CONDITION_CHECK, NumberedObjects
from decider.storage.object_reads import ReadMeter
from decider.storage.stores import ObjectStores
from decider.store.registry.registry_document import SavedEntry
from decider.store.registry.saved_registry import SavedRegistry
from shared.errors import PermanentError
from shared.paths.store_options import StoreOptions
from tests.support.s3_server import S3Server

CHANGE = {"table/a": SavedEntry(1, {"id": "a", "name": "a"})}


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    made = S3Server("state")
    yield made
    made.close()


def saved_at(server: S3Server, folder: str) -> SavedRegistry:
    stores = ObjectStores(StoreOptions({"s3://": server.options()}))
    return SavedRegistry(NumberedObjects(stores, f"s3://state/{folder}", ReadMeter()), lambda: 1)


def test_a_store_that_replaces_what_it_should_create_is_refused(server: S3Server) -> None:
    server.gate.deaf = "/state/deaf/"
    saved = saved_at(server, "deaf")
    for _ in range(2):
        with pytest.raises(PermanentError, match="s3://state/deaf: the store replaces objects"):
            asyncio.run(saved.save(CHANGE))
    assert server.keys("state") == [f"deaf/{CONDITION_CHECK}"]


def test_a_store_is_checked_once_by_each_process(server: S3Server) -> None:
    saved = saved_at(server, "kept")
    asyncio.run(saved.save(CHANGE))
    asyncio.run(saved.save({"table/b": SavedEntry(1, {"id": "b", "name": "b"})}))
    checks = [one for one in server.gate.seen if one.path == f"/state/kept/{CONDITION_CHECK}"]
    assert len(checks) == 2
    assert asyncio.run(saved_at(server, "kept").save({})).generation == 2
