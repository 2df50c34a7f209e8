"""The page is served to anyone and holds nothing; its policy allows its own files alone; no other file is served."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from decider.api.routes import page
from decider.gateway.credentials import Credentials, parse_tokens
from tests.support.live_decider import LiveDecider, deciders

pytestmark = pytest.mark.redis

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
