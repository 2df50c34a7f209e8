"""A REST catalog as a process: Iceberg's protocol on pyiceberg's catalog in a file, with faults on request.

`python -m tests.support.iceberg_rest PORT FOLDER TOKEN`. A POST to /faults names what happens to the next commits:
`lost-reply` makes the commit and answers 502, `dropped` answers 502 without it, `late` answers 504 and makes it a
second later, `unavailable` answers 503 once, `conflict` answers 409, `error` answers 500 without it, `slow` answers
seconds later, `cut` makes it and ends the connection within the answer; an empty name leaves a commit alone. A GET of
/faults counts the names that are left, and the late commits to be made.
"""

import asyncio
import json
import sys
from collections import deque
from pathlib import Path
from typing import Any

import uvicorn
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchNamespaceError, NoSuchTableError
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableRequest, Table
from pyiceberg.table.metadata import TableMetadataV3
from pyiceberg.typedef import IcebergBaseModel
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

LATE_S = 1.0
SLOW_S = 3.0
_NOT_MADE = {"error": 500, "dropped": 502, "unavailable": 503}
_EXPECTED = (NoSuchTableError, NoSuchNamespaceError, CommitFailedException, PermissionError)


class Server:
    """The routes of one catalog."""

    def __init__(self, folder: Path, token: str) -> None:
        uri = f"sqlite:///{folder}/catalog.db"
        self._catalog = SqlCatalog("served", uri=uri, warehouse=folder.as_uri())
        self._token = token
        self._faults: deque[str] = deque()
        self._late: set[asyncio.Task[Table]] = set()
        self._committing = asyncio.Lock()

    def app(self) -> Starlette:
        table = "/v1/namespaces/{namespace}/tables/{table}"
        return Starlette(
            routes=[
                Route("/v1/config", self._config),
                Route("/faults", self._plan, methods=["POST"]),
                Route("/faults", self._count),
                Route("/v1/namespaces", self._namespaces),
                Route("/v1/namespaces", self._create_namespace, methods=["POST"]),
                Route("/v1/namespaces/{namespace}", self._namespace, methods=["GET", "HEAD"]),
                Route("/v1/namespaces/{namespace}/tables", self._tables),
                Route("/v1/namespaces/{namespace}/tables", self._create, methods=["POST"]),
                Route(table, self._load, methods=["GET", "HEAD"]),
                Route(table, self._commit, methods=["POST"]),
                Route(f"{table}/metrics", self._metrics, methods=["POST"]),
            ],
            exception_handlers=dict.fromkeys([*_EXPECTED, Exception, 404], self._failed),
        )

    async def _config(self, _: Request) -> Response:
        return JSONResponse({"defaults": {}, "overrides": {}})

    async def _plan(self, request: Request) -> Response:
        self._faults.extend(await request.json())
        return Response(status_code=204)

    async def _count(self, _: Request) -> Response:
        return JSONResponse({"planned": len(self._faults), "late": len(self._late)})

    async def _namespaces(self, request: Request) -> Response:
        self._authorize(request)
        parent = tuple(filter(None, request.query_params.get("parent", "").split("\x1f")))
        return JSONResponse({"namespaces": [list(name) for name in self._catalog.list_namespaces(parent)]})

    async def _create_namespace(self, request: Request) -> Response:
        self._authorize(request)
        body = await request.json()
        self._catalog.create_namespace(tuple(body["namespace"]))
        return JSONResponse({"namespace": body["namespace"], "properties": {}})

    async def _namespace(self, request: Request) -> Response:
        self._authorize(request)
        name = request.path_params["namespace"]
        self._catalog.load_namespace_properties(name)
        return JSONResponse({"namespace": [name], "properties": {}})

    async def _tables(self, request: Request) -> Response:
        self._authorize(request)
        found = self._catalog.list_tables(request.path_params["namespace"])
        return JSONResponse({"identifiers": [{"namespace": list(name[:-1]), "name": name[-1]} for name in found]})

    async def _create(self, request: Request) -> Response:
        self._authorize(request)
        body = await request.json()
        spec = body.get("partition-spec")
        made = self._catalog.create_table(
            (request.path_params["namespace"], body["name"]),
            Schema.model_validate(body["schema"]),
            partition_spec=PartitionSpec.model_validate(spec) if spec else UNPARTITIONED_PARTITION_SPEC,
            properties=body.get("properties") or {},
        )
        return _described(made)

    async def _load(self, request: Request) -> Response:
        self._authorize(request)
        return _described(await asyncio.to_thread(self._catalog.load_table, _name(request)))

    async def _commit(self, request: Request) -> Response:
        self._authorize(request)
        name, body = _name(request), await request.body()
        fault = self._faults.popleft() if self._faults else ""
        match fault:
            case "conflict":
                raise CommitFailedException("by request")
            case "dropped" | "unavailable" | "error":
                return _error(_NOT_MADE[fault], "ServiceFailureException", fault)
            case "slow":
                await asyncio.sleep(SLOW_S)
            case "late":
                task = asyncio.create_task(self._commit_late(name, body))
                self._late.add(task)
                task.add_done_callback(self._late.discard)
                return _error(504, "ServiceFailureException", fault)
        made = await self._make(name, body)
        if fault == "cut":
            return _Unfinished()
        return _error(502, "ServiceFailureException", fault) if fault == "lost-reply" else _described(made)

    async def _commit_late(self, name: tuple[str, str], body: bytes) -> Table:
        await asyncio.sleep(LATE_S)
        return await self._make(name, body)

    async def _make(self, name: tuple[str, str], body: bytes) -> Table:
        asked = json.loads(body)
        asked["identifier"] = {"namespace": [name[0]], "name": name[1]}
        wanted = CommitTableRequest.model_validate(asked)
        async with self._committing:
            table = await asyncio.to_thread(self._catalog.load_table, name)
            await asyncio.to_thread(self._catalog.commit_table, table, wanted.requirements, wanted.updates)
            return await asyncio.to_thread(self._catalog.load_table, name)

    async def _metrics(self, _: Request) -> Response:
        return Response(status_code=204)

    def _authorize(self, request: Request) -> None:
        if request.headers.get("authorization") != f"Bearer {self._token}":
            raise PermissionError("a bearer token is needed")

    async def _failed(self, _: Request, problem: Exception) -> Response:
        match problem:
            case NoSuchTableError():
                return _error(404, "NoSuchTableException", str(problem))
            case NoSuchNamespaceError():
                return _error(404, "NoSuchNamespaceException", str(problem))
            case CommitFailedException():
                return _error(409, "CommitFailedException", str(problem))
            case PermissionError():
                return _error(401, "NotAuthorizedException", str(problem))
        code = getattr(problem, "status_code", 500)
        return _error(code, "ServiceFailureException", f"{type(problem).__name__}: {problem}")


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


def _name(request: Request) -> tuple[str, str]:
    return request.path_params["namespace"], request.path_params["table"]


def _described(table: Table) -> Response:
    body: dict[str, Any] = {
        "metadata-location": table.metadata_location,
        "metadata": json.loads(table.metadata.model_dump_json(by_alias=True, exclude_none=True)),
        "config": {},
    }
    return JSONResponse(body)


def _error(code: int, kind: str, message: str) -> Response:
    return JSONResponse({"error": {"message": message, "type": kind, "code": code}}, status_code=code)


if __name__ == "__main__":
    allow_version_3()
    port, folder, token = sys.argv[1:]
    uvicorn.run(Server(Path(folder), token).app(), host="127.0.0.1", port=int(port), log_level="error")
