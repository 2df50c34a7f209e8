"""The command line uses only the REST API, so any other client can do whatever it does.

A failure is one line: what, where, and what to do about it.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

from shared.errors import LakewrightError

if TYPE_CHECKING:
    import httpx

TIMEOUT_S = 30.0
"""Longest wait for an answer: a dry run reads a table's whole log."""

SILENCE_S = 60.0
"""Longest silence of an event stream: the decider sends something every fifteen seconds."""


_CHANGE, _COMMAND = re.compile(r"PATCH /v1/tables/(\S+)"), r"`lakewright tables change \1`"
"""A call that the API advises, and the command that makes it."""


class CallFailed(LakewrightError):  # noqa: N818 - the name describes the event
    """A call that did not succeed; the message is the line to show, the status the answer's, 0 without one."""

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class NoResponse(CallFailed):
    """A call without a server, or whose connection was lost: the same call may succeed later."""


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One server-sent event; `id` is None for one after which a reader cannot resume."""

    event: str
    data: Any
    id: str | None


@dataclass(slots=True)
class ApiClient:
    """Calls one decider; `transport` replaces the network."""

    url: str
    token: str | None = None
    transport: "httpx.BaseTransport | None" = None
    _client: "httpx.Client | None" = None

    def __enter__(self) -> Self:
        import httpx  # noqa: PLC0415 - a fifth of a second, when a call is made

        headers = {"authorization": f"Bearer {self.token}"} if self.token else {}
        self._client = httpx.Client(
            base_url=self.url, headers=headers, timeout=TIMEOUT_S, transport=self.transport, trust_env=False
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            self._client.close()

    def get(self, path: str, params: Mapping[str, Any] | None = None) -> Any:
        """Return the answer to a GET; parameters that are None are left out."""
        given = {name: value for name, value in (params or {}).items() if value is not None}
        return self._call("GET", path, params=given)

    def post(self, path: str, body: object) -> Any:
        """Return the answer to a POST of JSON."""
        return self._call("POST", path, json=body)

    def put(self, path: str, body: object) -> Any:
        """Return the answer to a PUT of JSON."""
        return self._call("PUT", path, json=body)

    def patch(self, path: str, body: object) -> Any:
        """Return the answer to a PATCH of JSON."""
        return self._call("PATCH", path, json=body)

    def post_raw(self, path: str, body: bytes) -> Any:
        """Return the answer to a POST of bytes that are JSON already."""
        return self._call("POST", path, content=body, headers={"content-type": "application/json"})

    def delete(self, path: str) -> Any:
        """Return the answer to a DELETE, None if it has no body."""
        return self._call("DELETE", path)

    def events(self, path: str, params: Mapping[str, Any], last_id: str | None) -> Iterator[ServerSentEvent]:
        """Yield server-sent events until the connection ends; raises CallFailed if there is none or it breaks."""
        headers = {"last-event-id": last_id} if last_id else {}
        given = {name: value for name, value in params.items() if value}
        with (
            self._connection() as client,
            client.stream("GET", path, params=given, headers=headers, timeout=SILENCE_S) as answer,
        ):
            if not answer.is_success:
                answer.read()
                raise CallFailed(self._problem(answer))
            yield from _events(answer.iter_lines())

    @contextmanager
    def _connection(self) -> "Iterator[httpx.Client]":
        """Yield the client; raises NoResponse where no server answers."""
        import httpx  # noqa: PLC0415 - loaded already

        if self._client is None:
            raise RuntimeError("use the client in a with statement")
        try:
            yield self._client
        except (httpx.TransportError, httpx.InvalidURL) as problem:
            raise NoResponse(
                f"no decider answers at {self.url} ({problem}); start one with 'lakewright standalone', or name "
                "another with --url or LAKEWRIGHT_URL"
            ) from problem

    def _call(self, method: str, path: str, **arguments: Any) -> Any:
        with self._connection() as client:
            answer = client.request(method, path, **arguments)
        if answer.is_success:
            return answer.json() if answer.content else None
        raise CallFailed(self._problem(answer), status=answer.status_code)

    def _problem(self, answer: "httpx.Response") -> str:
        """Return the sentence of a problem document, without the call: who typed a command made none."""
        try:
            problem = answer.json()
        except ValueError:
            problem = None
        if not isinstance(problem, dict) or "detail" not in problem:
            return f"{self.url} answered with status {answer.status_code} and is no decider; check the address"
        # A conflict names what is there instead, in its sentence.
        has_choice = problem.get("allowed") and answer.status_code != HTTPStatus.CONFLICT
        advice = f" (allowed: {problem['allowed']})" if has_choice else ""
        if answer.status_code == HTTPStatus.UNAUTHORIZED:
            advice = "; set LAKEWRIGHT_TOKEN"
        if answer.status_code == HTTPStatus.FORBIDDEN:
            advice = "; the role of LAKEWRIGHT_TOKEN does not allow it"
        return f"{_CHANGE.sub(_COMMAND, str(problem['detail']))}{advice}"


def segment(name: str) -> str:
    """Return a name as one segment of a path; raises CallFailed for one that a path cannot hold as such.

    Clients and proxies resolve `.` and `..`, and servers see no difference between a slash and a quoted one: the call
    would be another one.
    """
    try:
        quoted = quote(name, safe="")
    except UnicodeEncodeError:
        quoted = ""
    if quoted in ("", ".", "..") or "/" in name:
        raise CallFailed(f"{name!r} is no name or id; give one as it is listed, such as sales.orders")
    return quoted


def _events(lines: Iterable[str]) -> Iterator[ServerSentEvent]:
    """Read the text/event-stream format; comments and unknown fields are passed over, as it wants."""
    fields: dict[str, str] = {}
    for line in lines:
        if not line:
            if "data" in fields:
                yield ServerSentEvent(fields.get("event", "message"), json.loads(fields["data"]), fields.get("id"))
            fields = {}
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        fields[name] = f"{fields[name]}\n{value}" if name == "data" and name in fields else value
