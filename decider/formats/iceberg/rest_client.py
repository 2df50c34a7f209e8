"""pyiceberg's client of REST catalogs, with limits of time and size for every answer, without the options of tables.

pyiceberg sets none. A catalog that takes a connection and never answers would keep the thread that asks, and with it
the lock under which catalogs are opened, for as long as the process lives.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import orjson
from pyiceberg.catalog.rest import _RETRY_ARGS, Endpoints, RestCatalog
from pyiceberg.catalog.rest.response import _handle_non_200_response
from pyiceberg.catalog.rest.scan_planning import StorageCredential
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.io import PY_IO_IMPL
from pyiceberg.typedef import Identifier
from requests import HTTPError
from tenacity import retry

from decider.formats.iceberg.raw_tables import RawTable
from shared.bounded_answer import joined

REQUEST_TIMEOUT_S = (10.0, 60.0)
"""Seconds to connect to a REST catalog, and for each answer; a catalog that takes longer is tried again later."""


ANSWER_TIMEOUT_S = 300.0
"""Seconds for a whole answer, however it trickles."""

_PIECE_BYTES = 65_536

F = TypeVar("F", bound=Callable[..., Any])

_with_a_new_token: Callable[[F], F] = retry(**cast("Any", _RETRY_ARGS))
"""Decorates a call as pyiceberg's own are: repeated once where the catalog no longer accepts the token."""


class LimitedRestCatalog(RestCatalog):
    """Its options come from the setting alone: a configuration of pyiceberg on this machine is not read."""

    def __init__(self, name: str, **options: Any) -> None:
        """Keep what was set apart from what the catalog adds."""
        self._given = options
        super().__init__(name, **options)

    def _load_file_io(self, properties: Any = None, location: str | None = None) -> Any:
        """Read files with what was set and what the catalog vends, but with no class that it names."""
        vended = _without_class({**self.properties, **(properties or {})}, self._given)
        self.properties = _without_class(self.properties, self._given)
        return super()._load_file_io(vended, location)

    @_with_a_new_token
    def load_table(self, identifier: str | Identifier) -> Any:
        """Return a table as a `RawTable`: pyiceberg's classes would refuse what they do not know."""
        place = self._split_identifier_for_path(identifier)
        response = self._session.get(self.url(Endpoints.load_table, prefixed=True, **place))
        try:
            response.raise_for_status()
        except HTTPError as problem:
            _handle_non_200_response(problem, {404: NoSuchTableError})
        answer = orjson.loads(response.content)
        raw, path = answer["metadata"], answer.get("metadata-location") or ""
        credentials = [StorageCredential.model_validate(one) for one in answer.get("storage-credentials") or ()]
        own = self._resolve_storage_credentials(credentials, path)
        # Without the properties of the table, which everyone who may write to it sets.
        vended = {**(answer.get("config") or {}), **own}
        return RawTable(raw, path, self._load_file_io(vended, path))

    def _config_headers(self, session: Any) -> None:
        """Limit a session where pyiceberg has just made it: before it asks for configuration and token."""
        super()._config_headers(session)
        adapter_of = session.get_adapter
        session.get_adapter = lambda url: _LimitedAdapter(adapter_of(url), self.name)


def _without_class(options: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with the class of the settings, or none: the decider imports no class that a catalog names."""
    kept = {name: value for name, value in options.items() if name != PY_IO_IMPL}
    return kept | ({PY_IO_IMPL: given[PY_IO_IMPL]} if PY_IO_IMPL in given else {})


class _LimitedAdapter:
    """Sends a request, also one that follows a redirect, and reads its answer within limits."""

    def __init__(self, adapter: Any, catalog: str) -> None:
        self._adapter = adapter
        self._catalog = catalog

    def send(self, request: Any, **options: Any) -> Any:
        """Send as the adapter of `requests` does."""
        until_s = time.monotonic() + ANSWER_TIMEOUT_S
        limits = {"timeout": options.pop("timeout", None) or REQUEST_TIMEOUT_S, "stream": True}
        answer = self._adapter.send(request, **options | limits)
        of = f"catalog {self._catalog}: an answer of {request.url.partition('?')[0]}"
        answer._content = joined(  # noqa: SLF001 - where an answer keeps its body
            answer.iter_content(_PIECE_BYTES), of, until_s=until_s, now_s=time.monotonic
        )
        return answer
