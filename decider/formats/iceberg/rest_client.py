"""pyiceberg's client of REST catalogs with a time limit for every request, those included that open the catalog.

pyiceberg sets none. A catalog that takes a connection and never answers would keep the thread that asks, and with it
the lock under which catalogs are opened, for as long as the process lives.
"""

from typing import Any

from pyiceberg.catalog.rest import RestCatalog

REQUEST_TIMEOUT_S = (10.0, 60.0)
"""Seconds to connect to a REST catalog, and for each answer; a catalog that takes longer is tried again later."""


class LimitedRestCatalog(RestCatalog):
    """Its options are those of the setting alone: a configuration of pyiceberg on this machine is not read."""

    def _config_headers(self, session: Any) -> None:
        """Limit a session where pyiceberg has just made it: before it asks for configuration and token."""
        super()._config_headers(session)
        send = session.send

        def limited(request: Any, **options: Any) -> Any:
            options["timeout"] = options.get("timeout") or REQUEST_TIMEOUT_S
            return send(request, **options)

        session.send = limited
