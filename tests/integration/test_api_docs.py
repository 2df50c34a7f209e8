"""The page of the API's description runs offline: every byte comes from us, and its policy allows nothing else.

tests/page/test_views.py draws it in a browser.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from decider.api.routes import page
from decider.gateway.credentials import Credentials, parse_tokens
from tests.support.live_decider import LiveDecider, decider_settings, deciders

pytestmark = pytest.mark.redis

TOKEN = "viewer-t0ken-for-tests"  # noqa: S105


def policy(header: str) -> dict[str, set[str]]:
    """Read a policy of content into its directives."""
    parts = (directive.split() for directive in header.split(";") if directive.strip())
    return {name: set(sources) for name, *sources in parts}


def test_the_page_names_no_other_host_and_all_that_it_loads_is_served(decider: LiveDecider) -> None:
    answer = decider.client.get("/docs")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "//" not in answer.text, "an address of another host"
    loaded = re.findall(r'(?:src|href)="([^"]+)"', answer.text)
    assert len(loaded) == 5
    for address in loaded:
        found = decider.client.get(f"/{address}")
        assert found.status_code == 200, address
        assert found.content
        assert found.headers["x-content-type-options"] == "nosniff", "so its type must be right"
    types = {address: decider.client.get(f"/{address}").headers["content-type"].split(";")[0] for address in loaded}
    assert {types[one] for one in loaded if one.endswith(".js")} == {"text/javascript"}
    assert {types[one] for one in loaded if one.endswith(".css")} == {"text/css"}
    start = decider.client.get("/docs/assets/start.js").text
    assert "//" not in start
    assert "validatorUrl: null" in start, "Swagger UI asks a validator of another host otherwise"


def test_its_policy_allows_our_own_files_and_nothing_that_is_written_into_the_page(decider: LiveDecider) -> None:
    answer = decider.client.get("/docs")
    rules = policy(answer.headers["content-security-policy"])
    assert rules["default-src"] == {"'none'"}
    allowed = {source for name, sources in rules.items() for source in sources}
    assert allowed == {"'none'", "'self'", "data:"}
    assert rules["script-src"] == rules["style-src"] == rules["connect-src"] == {"'self'"}
    assert rules["frame-ancestors"] == {"'none'"}
    assert not re.search(r"<script(?![^>]*src=)|<style|\son\w+=|\sstyle=", answer.text)
    other = decider.client.get("/openapi.json").headers["content-security-policy"]
    assert policy(other) == {"default-src": {"'none'"}, "frame-ancestors": {"'none'"}}


@pytest.mark.parametrize(
    "path", ["/redoc", "/docs/oauth2-redirect", "/docs/assets/redoc.standalone.js", "/docs/assets/..%2fcore.py"]
)
def test_nothing_else_of_the_package_and_no_other_page_is_served(decider: LiveDecider, path: str) -> None:
    assert decider.client.get(path).status_code == 404


def test_with_tokens_the_page_and_its_files_are_the_viewers(redis_url: str) -> None:
    with LiveDecider(decider_settings(redis_url, token=TOKEN)) as live:
        for path in ("/docs", "/docs/assets/start.js", "/docs/assets/swagger-ui.css"):
            assert live.client.get(path).status_code == 200
            assert live.client.get(path, headers={"authorization": "Bearer wrong"}).status_code == 401


KNOWN = Credentials(tokens=parse_tokens("viewer:viewer-t0ken-for-tests-only"))


@pytest.fixture
def start(redis_url: str) -> Iterator[Callable[..., LiveDecider]]:
    with deciders(redis_url) as start_one:
        yield start_one


@pytest.mark.parametrize("changes", [{}, {"known": KNOWN}], ids=["open", "with tokens"])
def test_the_page_and_its_files_need_no_token(start: Callable[..., LiveDecider], changes: dict[str, Any]) -> None:
    live = start(**changes)
    answer = live.client.get("/")
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-cache")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"<script(?![^>]*src=)|<style|\son\w+=|\sstyle=", answer.text)
    loaded = re.findall(r'(?:src|href)="\./([^"]+)"', answer.text)
    assert len(loaded) == 3
    for address in loaded:
        found = live.client.get(f"/{address}")
        assert found.status_code == 200, address
        assert "immutable" in found.headers["cache-control"]
        assert found.headers["x-content-type-options"] == "nosniff"


def test_files_are_sent_compressed_to_those_who_accept_it(start: Callable[..., LiveDecider]) -> None:
    live = start()
    script = re.findall(r'src="\./([^"]+)"', live.client.get("/").text)[0]
    small = live.client.get(f"/{script}", headers={"accept-encoding": "gzip"})
    plain = live.client.get(f"/{script}", headers={"accept-encoding": "identity"})
    assert small.headers["content-encoding"] == "gzip"
    assert int(small.headers["content-length"]) < int(plain.headers["content-length"]) / 2
    assert small.content == plain.content
    assert len(plain.content) < 300_000, "the page stays small"


@pytest.mark.parametrize(
    "name", ["..%2f..%2fapp.py", "..%5capp.py", "index.html", "none.js", "%00.js", "sources.sha256"]
)
def test_no_other_file_is_served(start: Callable[..., LiveDecider], name: str) -> None:
    assert start().client.get(f"/page/{name}").status_code == 404


def test_a_checkout_without_the_page_reports_how_to_build_it(
    start: Callable[..., LiveDecider], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(page, "BUILT", tmp_path)
    answer = start().client.get("/")
    assert (answer.status_code, "make setup" in answer.text) == (503, True)


def test_a_caller_is_shown_its_role(start: Callable[..., LiveDecider]) -> None:
    guarded = start(known=KNOWN)
    headers = {"authorization": "Bearer viewer-t0ken-for-tests-only"}
    found = guarded.client.get("/v1/me", headers=headers).json()
    assert (found["role"], found["may_act_as"], found["token_required"]) == ("viewer", ["viewer"], True)
    assert guarded.client.get("/v1/me").status_code == 401
    assert start().client.get("/v1/me").json()["role"] == "admin"
