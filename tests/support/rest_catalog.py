"""A small REST catalog as a process: Iceberg's protocol on pyiceberg's catalog in a file.

It serves what readers,
writers and Lakewright ask for, and nothing else: no views, no renaming, no scan planning. One process, one lock around
commits.
"""

import asyncio
import json
import uuid
from pathlib import Path
from typing import Any

import sqlalchemy
import uvicorn
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchNamespaceError, NoSuchTableError
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.serializers import ToOutputFile
from pyiceberg.table import CommitTableRequest, Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update import AssertRefSnapshotId
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from shared.formats.iceberg.names import YIELD, YIELD_KEY

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
            if base := undone_for(table, wanted):
                await asyncio.to_thread(self._put_back, table, base)
            await asyncio.to_thread(self._catalog.commit_table, table, wanted.requirements, wanted.updates)
            return await asyncio.to_thread(self._catalog.load_table, name)

    def _put_back(self, table: Table, metadata: TableMetadata) -> None:
        """Store metadata in the place of a table's."""
        place = f"{table.location()}/metadata/undone-{uuid.uuid4()}.metadata.json"
        ToOutputFile.table_metadata(metadata, table.io.new_output(place))
        row = sqlalchemy.update(IcebergTables).where(IcebergTables.table_name == table.name()[-1])
        with self._catalog.engine.begin() as connection:
            connection.execute(row.values(metadata_location=place))

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


def undone_for(table: Table, wanted: CommitTableRequest) -> TableMetadata | None:
    """Return the metadata without rewrites that a commit is to come before, as Polaris undoes them.

    None unless the commit expects an earlier snapshot of main, and all since then are rewrites that let themselves be
    undone. The sequence number goes back, too: the commit has the one of the first of them.
    """
    head = table.metadata
    expected = [one.snapshot_id for one in wanted.requirements if isinstance(one, AssertRefSnapshotId)]
    undone: list[int] = []
    at = head.current_snapshot_id
    while at is not None and [at] != expected:
        snapshot = head.snapshot_by_id(at)
        if snapshot is None or snapshot.summary is None or snapshot.summary.operation is not Operation.REPLACE:
            return None
        if snapshot.summary.additional_properties.get(YIELD_KEY) != YIELD:
            return None
        undone.append(at)
        at = snapshot.parent_snapshot_id
    if at is None or not undone:
        return None
    base = head.snapshot_by_id(at)
    assert base is not None
    main = head.refs["main"].model_copy(update={"snapshot_id": at})
    return head.model_copy(
        update={
            "current_snapshot_id": at,
            "refs": {**head.refs, "main": main},
            "snapshots": [one for one in head.snapshots if one.snapshot_id not in undone],
            "snapshot_log": [one for one in head.snapshot_log if one.snapshot_id not in undone],
            "last_sequence_number": base.sequence_number,
        }
    )


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
