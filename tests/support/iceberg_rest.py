"""A REST catalog as a process: Iceberg's protocol on pyiceberg's catalog in a file, with faults on request.

`python -m tests.support.iceberg_rest PORT FOLDER TOKEN`. See `catalog_faults` for the faults, and for the tokens that
it accepts beside its own.
"""

import sys
from pathlib import Path

from pyiceberg.table.metadata import TableMetadataV3
from pyiceberg.typedef import IcebergBaseModel
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.support.catalog_faults import Faults
from tests.support.rest_catalog import CatalogServer, described, serve, table_name


class Server(CatalogServer):
    """The catalog, with faults."""

    def __init__(self, folder: Path, token: str) -> None:
        super().__init__(folder, token)
        self._faults = Faults()

    def routes(self) -> list[Route]:
        return [*self._faults.routes(), *super().routes()]

    def _authorize(self, request: Request) -> None:
        if not self._faults.is_issued(request):
            super()._authorize(request)

    async def _commit(self, request: Request) -> Response:
        self._authorize(request)
        name, body = table_name(request), await request.body()

        async def make() -> Response:
            return described(await self._make(name, body))

        return await self._faults.commit(make)


def allow_version_3() -> None:
    """Let pyiceberg write metadata of version 3, whose manifests it does not write: those are of other writers."""
    TableMetadataV3.model_dump_json = IcebergBaseModel.model_dump_json  # type: ignore[method-assign]
    TableMetadataV3.model_fields["next_row_id"].default = 0
    TableMetadataV3.model_rebuild(force=True)


if __name__ == "__main__":
    allow_version_3()
    port, folder, token = sys.argv[1:]
    serve(Server(Path(folder), token), int(port))
