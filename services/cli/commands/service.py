"""`lakewright standalone | decider | actor`: this process becomes the service, with the environment as its settings.

The command line is installed without the services' libraries; what is missing is named with the extra that brings it.
"""

import os
import sys
from collections.abc import Sequence
from enum import StrEnum
from importlib.util import find_spec

from services.cli.client import CallFailed


class Service(StrEnum):
    """A program of `services/`, named as its extra."""

    STANDALONE = "standalone"
    DECIDER = "decider"
    ACTOR = "actor"


_DECIDER = ("fastapi", "obstore", "prometheus_client", "pyarrow", "pydantic", "redis", "uvicorn")
_ACTOR = ("pyspark", "delta", "redis")
NEEDED = {
    Service.DECIDER: _DECIDER,
    Service.ACTOR: _ACTOR,
    Service.STANDALONE: (*_DECIDER, *_ACTOR),
}
"""The modules that each service imports, beyond the command line's."""


def missing(service: Service) -> tuple[str, ...]:
    """Return the modules that a service needs and that are not installed."""
    return tuple(name for name in dict.fromkeys(NEEDED[service]) if find_spec(name) is None)


def become(service: Service, arguments: Sequence[str]) -> None:
    """Replace this process by the service. Raises CallFailed if a library is missing."""
    absent = missing(service)
    if absent:
        raise CallFailed(
            f"the {service} needs {', '.join(absent)}, which is not installed; run: pip install 'lakewright[{service}]'"
        )
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, "-m", f"services.{service}", *arguments])  # noqa: S606 - no shell wanted
