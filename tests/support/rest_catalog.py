"""A small REST catalog as a process: Iceberg's protocol on pyiceberg's catalog in a file.

It serves what readers,
writers and Lakewright ask for, and nothing else: no views, no renaming, no scan planning. One process, one lock around
commits.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import uvicorn
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchNamespaceError, NoSuchTableError
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableRequest, Table
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

KEEP_ALIVE_S = 3_600
"""Longer than any client here is idle: a request that crosses the end of its connection fails, and not all clients
repeat it."""

_EXPECTED = (NoSuchTableError, NoSuchNamespaceError, CommitFailedException, PermissionError)


class CatalogServer:
    """The routes of one catalog, whose tables and database lie in a folder."""

    def __init__(self, folder: Path, token: str) -> None:
        self._catalog = SqlCatalog("served", uri=f"sqlite:///{folder}/catalog.db", warehouse=folder.as_uri())
        self._token = token
        self._committing = asyncio.Lock()

    def routes(self) -> list[Route]:
        """Return what is served."""
        table = "/v1/namespaces/{namespace}/tables/{table}"
        return [
            Route("/v1/config", self._config),
            Route("/v1/namespaces", self._namespaces),
            Route("/v1/namespaces", self._create_namespace, methods=["POST"]),
            Route("/v1/namespaces/{namespace}", self._namespace, methods=["GET", "HEAD"]),
            Route("/v1/namespaces/{namespace}/tables", self._tables),
            Route("/v1/namespaces/{namespace}/tables", self._create, methods=["POST"]),
            Route(table, self._load, methods=["GET", "HEAD"]),
            Route(table, self._commit, methods=["POST"]),
            Route(f"{table}/metrics", self._metrics, methods=["POST"]),
        ]

    def app(self) -> Starlette:
        """Return the application."""
        handlers: dict[Any, Any] = dict.fromkeys([*_EXPECTED, Exception, 404], self._failed)
        return Starlette(routes=self.routes(), exception_handlers=handlers)

    async def _config(self, _: Request) -> Response:
        return JSONResponse({"defaults": {}, "overrides": {}})

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
        return described(made)

    async def _load(self, request: Request) -> Response:
        self._authorize(request)
        return described(await asyncio.to_thread(self._catalog.load_table, table_name(request)))

    async def _commit(self, request: Request) -> Response:
        self._authorize(request)
        return described(await self._make(table_name(request), await request.body()))

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
                return error_response(404, "NoSuchTableException", str(problem))
            case NoSuchNamespaceError():
                return error_response(404, "NoSuchNamespaceException", str(problem))
            case CommitFailedException():
                return error_response(409, "CommitFailedException", str(problem))
            case PermissionError():
                return error_response(401, "NotAuthorizedException", str(problem))
        code = getattr(problem, "status_code", 500)
        return error_response(code, "ServiceFailureException", f"{type(problem).__name__}: {problem}")


def serve(server: CatalogServer, port: int) -> None:
    """Serve until the process is ended."""
    uvicorn.run(
        server.app(), host="127.0.0.1", port=port, log_level="error", timeout_keep_alive=KEEP_ALIVE_S, access_log=False
    )


def table_name(request: Request) -> tuple[str, str]:
    """Return the table that a request is about."""
    return request.path_params["namespace"], request.path_params["table"]


def described(table: Table) -> Response:
    """Return a table as the answer to loading and committing."""
    body: dict[str, Any] = {
        "metadata-location": table.metadata_location,
        "metadata": json.loads(table.metadata.model_dump_json(by_alias=True, exclude_none=True)),
        "config": {},
    }
    return JSONResponse(body)


def error_response(code: int, kind: str, message: str) -> Response:
    """Return an error as the protocol spells it."""
    return JSONResponse({"error": {"message": message, "type": kind, "code": code}}, status_code=code)
