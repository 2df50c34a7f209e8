"""Credentials of a catalog are for one table, requested again before they expire, and none is no credential."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from decider.formats.delta.unity_tables import RENEW_BEFORE_S, UnityTables, VendedCredentials
from shared.errors import InvalidInput, PermanentError
from shared.unity.options import CredentialSource
from shared.unity.table_info import UnityTable
from shared.unity.temporary_credentials import TemporaryCredentials
from tests.support.unity_samples import sample
from tests.support.unity_server import UnityServer

NOW_S = 1_000_000.0
TABLE = UnityTable("main.sales.orders", "id-1", "s3://lake/orders")


class Giver:
    """Gives credentials that are valid for so many seconds, each of its own."""

    def __init__(self, *valid_s: float | None) -> None:
        self.now_s = NOW_S
        self._valid_s: Iterator[float | None] = iter(valid_s)
        self.given = 0

    async def give(self) -> TemporaryCredentials:
        self.given += 1
        valid_s = next(self._valid_s)
        values = {"access_key_id": f"key-{self.given}", "secret_access_key": "s", "token": "t"}
        return TemporaryCredentials(values, None if valid_s is None else int((self.now_s + valid_s) * 1000))


def keys(giver: Giver, *after_s: float) -> list[str]:
    """Return which key is used after so many seconds each."""

    async def used() -> list[str]:
        credentials, found = VendedCredentials(giver.give, lambda: giver.now_s), []
        for later_s in after_s:
            giver.now_s = NOW_S + later_s
            found.append((await credentials())["access_key_id"])
        return found

    return asyncio.run(used())


def test_they_are_requested_again_before_they_expire() -> None:
    giver = Giver(3_600, 3_600)
    turn_s = 3_600 - RENEW_BEFORE_S
    assert keys(giver, 0, 60, turn_s - 1, turn_s + 1, turn_s + 60) == ["key-1", "key-1", "key-1", "key-2", "key-2"]
    assert giver.given == 2


def test_those_that_do_not_expire_are_requested_once() -> None:
    assert keys(Giver(None), 0, 10**9) == ["key-1", "key-1"]


def test_obstore_gets_their_end() -> None:
    async def given(valid_s: float | None) -> Any:
        return (await VendedCredentials(Giver(valid_s).give, lambda: NOW_S)())["expires_at"]

    assert asyncio.run(given(3_600)).timestamp() == NOW_S + 3_600
    assert asyncio.run(given(None)) is None
    assert VendedCredentials.refresh_threshold.total_seconds() == RENEW_BEFORE_S


def vending(server: UnityServer, source: CredentialSource = CredentialSource.VENDED) -> UnityTables:
    return UnityTables(server.catalog("s3://lake", credentials=source))


def test_a_decider_asks_for_those_that_read() -> None:
    server = UnityServer(credentials=sample("aws_credentials"))
    credentials = vending(server).credentials(TABLE)
    assert credentials is not None
    assert asyncio.run(credentials())["access_key_id"] == "accessKey0"
    assert server.bodies == [{"table_id": "id-1", "operation": "READ"}]


def test_none_are_asked_for_where_our_own_are_used_or_none_are_needed() -> None:
    assert vending(UnityServer(), CredentialSource.OWN).credentials(TABLE) is None
    assert vending(UnityServer()).credentials(UnityTable("a.b.c", "id", "file:///t")) is None


def test_a_catalog_that_gives_none_is_an_error_that_names_the_option() -> None:
    credentials = vending(UnityServer()).credentials(TABLE)
    assert credentials is not None
    with pytest.raises(InvalidInput, match="`credentials` to `own`"):
        asyncio.run(credentials.renew())


def test_a_refusal_is_an_error_of_ours() -> None:
    server = UnityServer(fault=(403, b'{"error_code": "PERMISSION_DENIED"}'))
    credentials = vending(server).credentials(TABLE)
    assert credentials is not None
    with pytest.raises(PermanentError, match=r"requesting credentials to read main\.sales\.orders"):
        asyncio.run(credentials.renew())
