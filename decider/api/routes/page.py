"""The page: the files that `page/build.py` made, served from the installed package without a token.

They hold no data: what the page shows it reads from the API, with the token that a person types. Names of files carry
a digest of their content, so that browsers keep them; the start page is asked for each time.

The API documentation page: Swagger UI from an installed package, so that no other host is contacted.

The page has no inline script or style, because its content security policy allows none; URLs are relative, so that it
works behind a proxy's prefix.
"""

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

from fastapi import APIRouter, Request, Response
from fastapi.responses import FileResponse, HTMLResponse

from decider.web.errors import not_found

router = APIRouter(include_in_schema=False)

BUILT = Path(__file__).resolve().parents[2] / "page"
"""Folder of the built files; a checkout has it after `make setup`, and a wheel always."""

TYPES: Mapping[str, str] = MappingProxyType({".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"})
"""Types of the files that may be served; no others are."""

KEPT = "public, max-age=31536000, immutable"
"""For files with a digest in their name: a year, the longest that is in use."""

MISSING = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>Lakewright</title></head>
<body>
<h1>Lakewright</h1>
<p>The page is not built in this checkout: run <code>make setup</code> where the npm registry can be reached.</p>
<p><a href="docs">API documentation</a></p>
</body>
</html>
"""


@router.get("/")
async def start_page(request: Request) -> Response:
    """Return the start page."""
    if not (BUILT / "index.html").is_file():
        return HTMLResponse(MISSING, 503)
    return _file(request, BUILT / "index.html", "text/html; charset=utf-8", "no-cache")


@router.get("/page/{name}")
async def page_asset(request: Request, name: str) -> Response:
    """Return a script, a style sheet or a picture of the page, and nothing else."""
    file = BUILT / "page" / name
    media_type = TYPES.get(file.suffix)
    if media_type is None or "/" in name or "\\" in name or not file.is_file():
        raise not_found("file", name)
    return _file(request, file, media_type, KEPT)


def _file(request: Request, file: Path, media_type: str, caching: str) -> Response:
    """Return a file, compressed if the client accepts that and the build made it so."""
    headers = {"cache-control": caching, "vary": "accept-encoding"}
    compressed = file.with_name(file.name + ".gz")
    if "gzip" in request.headers.get("accept-encoding", "") and compressed.is_file():
        file, headers = compressed, headers | {"content-encoding": "gzip"}
    return Response(_content(file, file.stat().st_mtime_ns), media_type=media_type, headers=headers)


@lru_cache(maxsize=32)
def _content(file: Path, _modified_ns: int) -> bytes:
    """Read a file once: sent from memory, it needs no thread, for which a busy decider would make it wait."""
    return file.read_bytes()


PACKAGE = "fastapi_offline"
"""Ships Swagger UI (Apache-2.0) as released; its own code is not used."""

ASSETS: Mapping[str, str] = MappingProxyType(
    {"swagger-ui.css": "text/css", "swagger-ui-bundle.js": "text/javascript", "favicon.png": "image/png"}
)
"""Files of the package that the page loads, and their types."""

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Lakewright API</title>
<link rel="icon" type="image/png" href="docs/assets/favicon.png">
<link rel="stylesheet" href="docs/assets/swagger-ui.css">
</head>
<body>
<div id="swagger-ui"></div>
<noscript>This page needs JavaScript; the description itself is at <a href="openapi.json">openapi.json</a>.</noscript>
<script src="docs/assets/swagger-ui-bundle.js"></script>
<script src="docs/assets/start.js"></script>
</body>
</html>
"""

START = """"use strict";
SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  validatorUrl: null,
  presets: [SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
});
"""
"""`validatorUrl: null`: otherwise the page would send the description's address to a validator on another host."""


@router.get("/docs")
async def docs_page() -> HTMLResponse:
    """Return the page."""
    return HTMLResponse(PAGE)


@router.get("/docs/assets/{name}")
async def docs_asset(name: str) -> Response:
    """Return a file that the page loads, and no other."""
    if name == "start.js":
        return Response(START, media_type="text/javascript")
    if name not in ASSETS:
        raise not_found("file", name)
    return FileResponse(Path(str(files(PACKAGE) / "static" / name)), media_type=ASSETS[name])
