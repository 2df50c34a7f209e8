"""A REST catalog as a process: Iceberg's protocol on pyiceberg's catalog in a file, with faults on request.

`python -m tests.support.iceberg_rest PORT FOLDER TOKEN`. A POST to /faults names what happens to the next commits:
`lost-reply` makes the commit and answers 502, `dropped` answers 502 without it, `late` answers 504 and makes it a
second later, `unavailable` answers 503 once, `conflict` answers 409, `error` answers 500 without it, `slow` answers
seconds later, `cut` makes it and ends the connection within the answer; an empty name leaves a commit alone. A GET of
/faults counts the names that are left, and the late commits to be made.

Beside its token it accepts those that it issued by OAuth2, for `CREDENTIAL` or in exchange for one of its own, until a
DELETE of /tokens revokes them.
"""

import asyncio
import secrets
import sys
from collections import deque
from pathlib import Path
from urllib.parse import parse_qsl

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadataV3
from pyiceberg.typedef import IcebergBaseModel
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from services.demo.rest_catalog import CatalogServer, described, error_response, serve, table_name

CREDENTIAL = "lakewright:a-secret"
LATE_S = 1.0
SLOW_S = 3.0
_NOT_MADE = {"error": 500, "dropped": 502, "unavailable": 503}


class Server(CatalogServer):
    """The catalog of the demonstration, with faults."""

    def __init__(self, folder: Path, token: str) -> None:
        super().__init__(folder, token)
        self._faults: deque[str] = deque()
        self._late: set[asyncio.Task[Table]] = set()
        self._issued: set[str] = set()

    def routes(self) -> list[Route]:
        faults = [Route("/faults", self._plan, methods=["POST"]), Route("/faults", self._count)]
        tokens = [
            Route("/v1/oauth/tokens", self._issue, methods=["POST"]),
            Route("/tokens", self._revoke, methods=["DELETE"]),
        ]
        return [*faults, *tokens, *super().routes()]

    async def _issue(self, request: Request) -> Response:
        form = dict(parse_qsl((await request.body()).decode()))
        id_and_secret = f"{form.get('client_id')}:{form.get('client_secret')}"
        if id_and_secret != CREDENTIAL and form.get("subject_token") not in self._issued:
            return JSONResponse({"error": "invalid_client", "error_description": "unknown"}, status_code=401)
        token = secrets.token_hex()
        self._issued.add(token)
        kind = "urn:ietf:params:oauth:token-type:access_token"
        body = {"access_token": token, "token_type": "bearer", "issued_token_type": kind, "expires_in": 3_600}
        return JSONResponse(body)

    async def _revoke(self, _: Request) -> Response:
        self._issued.clear()
        return Response(status_code=204)

    def _authorize(self, request: Request) -> None:
        if request.headers.get("authorization", "").removeprefix("Bearer ") not in self._issued:
            super()._authorize(request)

    async def _plan(self, request: Request) -> Response:
        self._faults.extend(await request.json())
        return Response(status_code=204)

    async def _count(self, _: Request) -> Response:
        return JSONResponse({"planned": len(self._faults), "late": len(self._late)})

    async def _commit(self, request: Request) -> Response:
        self._authorize(request)
        name, body = table_name(request), await request.body()
        fault = self._faults.popleft() if self._faults else ""
        match fault:
            case "conflict":
                raise CommitFailedException("by request")
            case "dropped" | "unavailable" | "error":
                return error_response(_NOT_MADE[fault], "ServiceFailureException", fault)
            case "slow":
                await asyncio.sleep(SLOW_S)
            case "late":
                task = asyncio.create_task(self._commit_late(name, body))
                self._late.add(task)
                task.add_done_callback(self._late.discard)
                return error_response(504, "ServiceFailureException", fault)
        made = await self._make(name, body)
        if fault == "cut":
            return _Unfinished()
        return error_response(502, "ServiceFailureException", fault) if fault == "lost-reply" else described(made)

    async def _commit_late(self, name: tuple[str, str], body: bytes) -> Table:
        await asyncio.sleep(LATE_S)
        return await self._make(name, body)


def allow_version_3() -> None:
    """Let pyiceberg write metadata of version 3, whose manifests it does not write: those are of other writers."""
    TableMetadataV3.model_dump_json = IcebergBaseModel.model_dump_json  # type: ignore[method-assign]
    TableMetadataV3.model_fields["next_row_id"].default = 0
    TableMetadataV3.model_rebuild(force=True)


class _Unfinished(Response):
    """An answer whose body never comes: the server ends the connection."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-length", b"1000"), (b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})


if __name__ == "__main__":
    allow_version_3()
    port, folder, token = sys.argv[1:]
    serve(Server(Path(folder), token), int(port))
