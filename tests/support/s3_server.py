"""A server that speaks S3's API on a free port of the loopback address: moto, behind a gate that can be asked to fail.

The gate notes every request, refuses access keys that it does not know as S3 does, and answers some requests itself,
like a store under pressure. It can hide conditions from moto, as if the store ignored them. Signatures are not checked
here; the tests with MinIO do that.
"""

import re
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import boto3
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from tests.support.time_limits import scaled

KEYS = {"access_key_id": "lakewright", "secret_access_key": "lakewright-secret"}
REGION = "eu-central-1"

_CREDENTIAL = re.compile(r"Credential=([^/]+)/")

Start = Callable[[str, list[tuple[str, str]]], Any]


class _Silent(WSGIRequestHandler):
    def log(self, *_: object) -> None:
        """Say nothing: the gate keeps its own list."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One request: method, path, query, and the access key it was signed with (`""`: not signed)."""

    method: str
    path: str
    query: str
    key: str


@dataclass(slots=True)
class Gate:
    """Stands before moto. `faults` are statuses for the next requests whose path or query contains `at`.

    Below the path `deaf` puts are made whatever exists. `lost`: statuses that the next puts of an object are answered
    with although they were served, by its key. `keys`: the access keys that it knows.
    """

    inner: Callable[[Mapping[str, Any], Start], Iterable[bytes]]
    seen: list[Seen] = field(default_factory=list)
    faults: list[int] = field(default_factory=list)
    at: str = ""
    deaf: str | None = None
    lost: dict[str, list[int]] = field(default_factory=dict)
    is_open: bool = False
    keys: set[str] = field(default_factory=lambda: {KEYS["access_key_id"]})

    def __call__(self, environ: Mapping[str, Any], start: Start) -> Iterable[bytes]:
        credential = _CREDENTIAL.search(environ.get("HTTP_AUTHORIZATION", ""))
        one = Seen(
            environ["REQUEST_METHOD"],
            environ["PATH_INFO"],
            environ["QUERY_STRING"],
            credential[1] if credential else "",
        )
        self.seen.append(one)
        if one.key not in self.keys and not (self.is_open and not one.key):
            code = "InvalidAccessKeyId" if one.key else "AccessDenied"
            return _refuse(start, 403, code)
        if self.faults and self.at in one.path + "?" + one.query:
            status = self.faults.pop(0)
            return _refuse(start, status, "SlowDown" if status in (429, 503) else "InternalError")
        if self.deaf is not None and one.path.startswith(self.deaf):
            environ = {name: value for name, value in environ.items() if name != "HTTP_IF_NONE_MATCH"}
        lost = self.lost.get(one.path.lstrip("/").partition("/")[2]) if one.method == "PUT" else None
        if lost:
            for _ in self.inner(environ, lambda *_: None):
                pass
            return _refuse(start, lost.pop(0), "InternalError")
        return self.inner(environ, start)


def _refuse(start: Start, status: int, code: str) -> Iterable[bytes]:
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>said the gate</Message></Error>".encode()
    start(f"{status} {code}", [("content-type", "application/xml"), ("content-length", str(len(body)))])
    return [body]


class S3Server:
    """The server with its gate; one bucket `lake` is there from the start."""

    def __init__(self, bucket: str = "lake") -> None:
        self.gate = Gate(DomainDispatcherApplication(create_backend_app))
        self._server: BaseWSGIServer = make_server("127.0.0.1", 0, self.gate, threaded=True, request_handler=_Silent)
        self._thread = threading.Thread(target=self._server.serve_forever, name="s3")
        self._thread.start()
        self._client = boto3.client(
            "s3",
            endpoint_url=self.url,
            region_name=REGION,
            aws_access_key_id=KEYS["access_key_id"],
            aws_secret_access_key=KEYS["secret_access_key"],
        )
        self._buckets: list[str] = []
        self.make_bucket(bucket)
        self.gate.seen.clear()

    @property
    def url(self) -> str:
        """Its endpoint."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def options(self, **changes: str) -> dict[str, str]:
        """Return what a store has to be asked to find it; these are deltalake's names, too."""
        return {"endpoint": self.url, "region": REGION, "allow_http": "true", **KEYS, **changes}

    def make_bucket(self, name: str) -> None:
        """Make a bucket."""
        self._client.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION})
        self._buckets.append(name)

    def delete(self, bucket: str, key: str) -> None:
        """Delete an object."""
        self._client.delete_object(Bucket=bucket, Key=key)

    def put(self, bucket: str, key: str, content: bytes) -> None:
        """Put an object."""
        self._client.put_object(Bucket=bucket, Key=key, Body=content)

    def get(self, bucket: str, key: str) -> bytes:
        """Return what an object holds."""
        return bytes(self._client.get_object(Bucket=bucket, Key=key)["Body"].read())

    def publish(self, bucket: str, prefix: str) -> None:
        """Let everybody read the objects below a prefix."""
        for entry in self._client.list_objects_v2(Bucket=bucket, Prefix=prefix)["Contents"]:
            self._client.put_object_acl(Bucket=bucket, Key=entry["Key"], ACL="public-read")

    def keys(self, bucket: str) -> list[str]:
        """List the objects of a bucket."""
        return [entry["Key"] for entry in self._client.list_objects_v2(Bucket=bucket).get("Contents", [])]

    def close(self) -> None:
        """End the server, and remove its buckets: moto keeps them for as long as the process lives."""
        self.gate.faults.clear()
        self.gate.keys.add(KEYS["access_key_id"])
        for bucket in self._buckets:
            for key in self.keys(bucket):
                self.delete(bucket, key)
            self._client.delete_bucket(Bucket=bucket)
        self._client.close()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(scaled(10))
