"""A small HTTP server that answers as the samples of Unity Catalog's REST API do (`tests/data/unity/README.md`).

It is no Unity server: no registry has one. What it knows of the contract is what the samples and their schemas show.
"""

import json
import os
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from shared.paths.boundary import Boundary
from shared.unity.catalog import UnityCatalog
from shared.unity.exchange import UnityAnswer, UnityRequest

FOLDER = Path(__file__).parents[1] / "data" / "unity"


def sample(name: str) -> dict[str, Any]:
    """Return a sample by its name without `.json`."""
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return found


def table_answer(full_name: str, location: str, table_id: str = "", **fields: Any) -> dict[str, Any]:
    """Return the sample of a table as one of this full name and location; `fields` replace others."""
    catalog, schema, name = full_name.split(".")
    own = {"name": name, "catalog_name": catalog, "schema_name": schema, "storage_location": location}
    return sample("table") | own | ({"table_id": table_id} if table_id else {}) | fields


PREFIX = "/api/2.1/unity-catalog"
TOKEN = "unity-token"  # noqa: S105 - of the tests
PAGE = 2
"""Names on one page of a listing."""


@dataclass(slots=True)
class UnityServer:
    """Tables by full name, and a `fault` with which it answers instead.

    `requests` are method and path of each, with the query's page token.
    """

    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    fault: tuple[int, bytes] | None = None
    requests: Counter[str] = field(default_factory=Counter)
    port: int = 0

    @property
    def uri(self) -> str:
        """The address of the REST API."""
        return f"http://127.0.0.1:{self.port}{PREFIX}"

    def options(self, *locations: str, **more: str) -> dict[str, str]:
        """Return the options of this catalog, in whose tables below these locations it is believed."""
        return {"type": "unity", "uri": self.uri, "token": TOKEN, "locations": ",".join(locations), **more}

    def put(self, full_name: str, location: str, table_id: str = "", **fields: Any) -> None:
        """Register a table, or have its name lead to another one."""
        self.tables[full_name] = table_answer(full_name, location, table_id, **fields)

    def answer(self, method: str, path: str, query: Mapping[str, str]) -> tuple[int, bytes]:
        """Return status and body of the answer to a request with a valid token."""
        self.requests[f"{method} {path}"] += 1
        if self.fault is not None:
            return self.fault
        match method, *path.removeprefix(PREFIX).strip("/").split("/"):
            case "GET", "tables", name:
                found = self.tables.get(unquote(name))
                return _json(404, sample("table_not_found")) if found is None else _json(200, found)
            case "GET", "tables":
                where = (query["catalog_name"], query["schema_name"])
                wanted = [one for one in self.tables.values() if (one["catalog_name"], one["schema_name"]) == where]
                return self._page("tables", wanted, query)
            case "GET", ("schemas" | "catalogs") as what:
                kind = what.removesuffix("s")
                at = query.get("catalog_name")
                wanted = [one for one in self.tables.values() if at in (None, one["catalog_name"])]
                names = dict.fromkeys(one[f"{kind}_name"] for one in wanted)
                return self._page(what, [sample(kind) | {"name": name} for name in names], query)
        return 404, b"<html>no such path</html>"

    def _page(self, what: str, found: list[dict[str, Any]], query: Mapping[str, str]) -> tuple[int, bytes]:
        start = int(query.get("page_token", "0"))
        following = str(start + PAGE) if start + PAGE < len(found) else None
        return _json(200, {what: found[start : start + PAGE], "next_page_token": following})

    def catalog(self, *locations: str) -> UnityCatalog:
        """Return this catalog without a network, as the options of the name `unity` would make it."""

        def send(request: UnityRequest) -> UnityAnswer:
            return UnityAnswer(*self.answer("GET", f"{PREFIX}/{request.path}", request.query))

        return UnityCatalog("unity", send, Boundary(locations, real_path=os.path.realpath))


def _json(status: int, found: object) -> tuple[int, bytes]:
    return status, json.dumps(found).encode()


@contextmanager
def unity_server() -> Iterator[UnityServer]:
    """Serve until the end, on a free port."""
    state = UnityServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._respond()

        def _respond(self) -> None:
            parts = urlsplit(self.path)
            query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
            if self.headers.get("Authorization") == f"Bearer {TOKEN}":
                status, answer = state.answer(self.command, parts.path, query)
            else:
                status, answer = _json(401, sample("unauthenticated"))
            self.send_response(status)
            if status in range(300, 400):
                self.send_header("Location", answer.decode())
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        state.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, name="unity-server")
        thread.start()
        try:
            yield state
        finally:
            server.shutdown()
            thread.join()
