"""The page of the API's description runs offline: every byte comes from us, and its policy allows nothing else.

tests/page/test_views.py draws it in a browser.
"""

import re

import pytest

from tests.support.live_decider import LiveDecider, decider_settings

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
