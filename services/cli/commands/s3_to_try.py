"""`lakewright try s3`: an S3 server on this machine, so that what the docs say of S3 can be followed without a bucket.

moto keeps the objects in memory and checks no signatures: it is for trials alone. It notifies the
decider of each file of a log, as a bucket does.
"""

import json
import queue
import threading
import time
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from typing import Annotated, Any
from urllib.parse import unquote

import typer

from services.cli.cli_context import setting_of
from services.cli.client import ApiClient, CallFailed

app = typer.Typer(no_args_is_help=True, help="Run what Lakewright can be tried with.")

REGION = "us-east-1"
KEY = "lakewright"
RETRY_S = 1.0  # Until the decider answers, which may start later.

Start = Callable[..., Any]
Wsgi = Callable[[dict[str, Any], Start], Any]


class Bucket:
    """A server with one bucket; `written`: the keys of the log files that were put into it, in order."""

    def __init__(self, inner: Wsgi, name: str) -> None:
        self.written: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._inner = inner
        self._path = f"/{name}/"

    def __call__(self, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        """Answer a request."""
        statuses: list[str] = []

        def started(status: str, *more: Any) -> Any:
            statuses.append(status)
            return start(status, *more)

        body: Iterable[bytes] = self._inner(environ, started)
        path = unquote(str(environ["PATH_INFO"]))
        is_log = path.startswith(self._path) and path.endswith(".json")
        if is_log and environ["REQUEST_METHOD"] in ("PUT", "POST") and statuses[-1:] == ["200 OK"]:
            self.written.put(path.removeprefix(self._path))
        return body


def notify(api: ApiClient, bucket: str, key: str) -> None:
    """Send the notification of a written object, as S3 does; again until the decider takes it."""
    event = {"eventName": "ObjectCreated:Put", "s3": {"bucket": {"name": bucket}, "object": {"key": key}}}
    while True:
        try:
            api.post("/v1/events/s3", {"Records": [event]})
        except CallFailed:
            time.sleep(RETRY_S)
        else:
            return


@app.command("s3")
def try_s3(
    context: typer.Context,
    bucket: Annotated[str, typer.Option(help="Name of the bucket that is made.")] = "lake",
    port: Annotated[int, typer.Option(min=1, max=65_535, help="Port on the loopback address.")] = 9000,
) -> None:
    """Run an S3 server in memory, whose bucket notifies the decider of commits; until Ctrl-C."""
    absent = [name for name in ("moto", "flask", "boto3") if find_spec(name) is None]
    if absent:
        raise CallFailed(f"this needs {', '.join(absent)}, which is not installed; run: pip install 'lakewright[try]'")
    import boto3  # noqa: PLC0415 - of an extra
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app  # noqa: PLC0415
    from werkzeug.serving import WSGIRequestHandler, make_server  # noqa: PLC0415

    class Silent(WSGIRequestHandler):
        def log(self, *_: object) -> None:
            pass

    application = Bucket(DomainDispatcherApplication(create_backend_app), bucket)
    try:
        server = make_server("127.0.0.1", port, application, threaded=True, request_handler=Silent)
    except (OSError, SystemExit) as problem:
        raise CallFailed(f"port {port} cannot be used; choose another with --port") from problem
    threading.Thread(target=server.serve_forever, name="s3", daemon=True).start()
    endpoint = f"http://127.0.0.1:{port}"
    keys = {"aws_access_key_id": KEY, "aws_secret_access_key": KEY}
    boto3.client("s3", endpoint_url=endpoint, region_name=REGION, **keys).create_bucket(Bucket=bucket)
    options = {
        "endpoint": endpoint, "allow_http": True, "region": REGION, "access_key_id": KEY, "secret_access_key": KEY,
    }  # fmt: skip
    out = setting_of(context).output()
    out.line(f"S3 is at {endpoint}, with the bucket {bucket}, in memory: what is in it ends with this command.")
    out.line("Set these, then start `lakewright standalone` there; writers need the same endpoint and keys:")
    out.line(f"export LAKEWRIGHT_STORE_OPTIONS='{json.dumps(options)}'")
    out.line(f"export LAKEWRIGHT_ALLOW_S3=true LAKEWRIGHT_ROOTS=s3://{bucket}")
    with setting_of(context).api() as api:
        while True:
            notify(api, bucket, application.written.get())
