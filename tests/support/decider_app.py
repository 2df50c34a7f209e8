"""The decider's application with default settings and its description, built once in a session; to be read only."""

from functools import cache
from typing import Any

from fastapi import FastAPI

from decider.api.app import create_app
from services.decider.build import build_services
from services.decider.settings import DeciderSettings


@cache
def decider_app() -> FastAPI:
    """Return the application; nothing is connected."""
    return create_app(build_services(DeciderSettings()))


@cache
def openapi_document() -> dict[str, Any]:
    """Return the OpenAPI document of the application."""
    return decider_app().openapi()
