"""The API documentation page: Swagger UI from an installed package, so that no other host is contacted.

The page has no inline script or style, because its content security policy allows none; URLs are relative, so that it
works behind a proxy's prefix.
"""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

from fastapi import APIRouter, Response
from fastapi.responses import FileResponse, HTMLResponse

from decider.web.errors import not_found

router = APIRouter(include_in_schema=False)

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
