"""A gateway as a process before a REST catalog that knows neither faults nor tokens: Iceberg's own server.

`python -m tests.support.iceberg_gateway PORT SERVER TOKEN`. Every request with the token, or with one that was issued,
is passed on as it came; commits come under the faults of `catalog_faults`.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.support.catalog_faults import Faults
from tests.support.rest_catalog import KEEP_ALIVE_S, error_response
from tests.support.time_limits import scaled

TABLE = "/v1/namespaces/{namespace}/tables/{table}"
_OF_A_CONNECTION = frozenset({"connection", "content-encoding", "content-length", "keep-alive", "transfer-encoding"})
"""Headers that are about bytes on one connection, and not about what is answered."""


class Gateway:
    """Passes requests on to the catalog at `server`."""

    def __init__(self, server: str, token: str) -> None:
        self._token = token
        self._faults = Faults()
        self._client = httpx.AsyncClient(base_url=server, timeout=scaled(60))

    def app(self) -> Starlette:
        """Return the application."""
        anything = Route("/{path:path}", self._pass, methods=["GET", "HEAD", "POST", "DELETE"])
        commit = Route(TABLE, self._commit, methods=["POST"])
        return Starlette(routes=[*self._faults.routes(), commit, anything], lifespan=self._life)

    @asynccontextmanager
    async def _life(self, _: Starlette) -> AsyncIterator[None]:
        async with self._client:
            yield

    async def _commit(self, request: Request) -> Response:
        if not self._is_allowed(request):
            return _refused()
        body = await request.body()

        async def make() -> Response:
            return await self._ask(request, body)

        return await self._faults.commit(make)

    async def _pass(self, request: Request) -> Response:
        if request.url.path != "/v1/config" and not self._is_allowed(request):
            return _refused()
        return await self._ask(request, await request.body())

    def _is_allowed(self, request: Request) -> bool:
        return self._faults.is_issued(request) or request.headers.get("authorization") == f"Bearer {self._token}"

    async def _ask(self, request: Request, body: bytes) -> Response:
        path = request.scope["raw_path"].decode()  # As it is escaped: namespaces have separators that are.
        query = request.scope["query_string"].decode()
        kept = {name: value for name, value in request.headers.items() if name not in {"host", "content-length"}}
        answer = await self._client.request(
            request.method, f"{path}?{query}" if query else path, content=body, headers=kept
        )
        headers = {name: value for name, value in answer.headers.items() if name not in _OF_A_CONNECTION}
        return Response(answer.content, status_code=answer.status_code, headers=headers)


def _refused() -> Response:
    return error_response(401, "NotAuthorizedException", "a bearer token is needed")


if __name__ == "__main__":
    port, server, token = sys.argv[1:]
    uvicorn.run(
        Gateway(server, token).app(),
        host="127.0.0.1", port=int(port), log_level="error", timeout_keep_alive=KEEP_ALIVE_S, access_log=False,
    )  # fmt: skip
