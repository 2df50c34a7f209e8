"""Tokens, secrets and roles: what is shown is compared as a hash, and no route is without its role."""

import base64
import hashlib

import pytest
from fastapi.routing import iter_route_contexts

from decider.gateway.credentials import (
    MAX_SECRETS,
    MAY_ACT_AS,
    Credentials,
    Role,
    TokenHash,
    parse_secrets,
    parse_tokens,
)
from decider.gateway.roles import OPEN, ROLES, _fits, needed
from services.decider.settings import decider_settings
from shared.errors import InvalidInput
from tests.support.decider_app import decider_app

TOKEN = "t0ken-for-tests-only"  # noqa: S105
SECRET = "s3cret-for-tests-only-of-32-chars"  # noqa: S105


def test_every_route_has_its_role() -> None:
    found = iter_route_contexts(decider_app().routes)
    routes = {(method, str(route.path)) for route in found for method in (route.methods or set()) - {"HEAD"}}
    assert len(routes) > 20
    role_of = {route: {one for one in ROLES if one[0] == route[0] and _fits(route[1], one[1])} for route in routes}
    assert {route for route in routes - OPEN if not role_of[route]} == set(), "give these a role in roles.py"
    assert not set(ROLES) & OPEN
    assert routes >= OPEN
    assert set().union(*role_of.values()) == set(ROLES), "these roles are of no route"


@pytest.mark.parametrize(
    ("method", "path", "role"),
    [
        ("GET", "/livez", None),
        ("HEAD", "/livez", None),
        ("OPTIONS", "/v1/events/azure", None),
        ("POST", "/v1/events", Role.HOOK),
        ("POST", "/v1/events/s3", Role.HOOK),
        ("GET", "/v1/tables/sales.orders", Role.VIEWER),
        ("HEAD", "/v1/tables", Role.VIEWER),
        ("DELETE", "/v1/tables/sales.orders", Role.ADMIN),
        ("GET", "/v1/tables/a/b", Role.ADMIN),
        ("GET", "/v1/tables/", Role.ADMIN),
        ("GET", "/openapi.json", Role.VIEWER),
        ("PUT", "/v1/tables", Role.ADMIN),
        ("GET", "/nothing", Role.ADMIN),
        ("POST", "/livez", Role.ADMIN),
    ],
)
def test_what_is_not_in_the_table_is_the_administrators(method: str, path: str, role: Role | None) -> None:
    assert needed(method, path) is role


def test_roles_include_each_other_but_a_hook_only_tells_and_a_viewer_only_looks() -> None:
    assert MAY_ACT_AS[Role.HOOK] == {Role.HOOK}
    assert MAY_ACT_AS[Role.VIEWER] == {Role.VIEWER}
    assert MAY_ACT_AS[Role.OPERATOR] == set(Role) - {Role.ADMIN}
    assert MAY_ACT_AS[Role.ADMIN] == set(Role)


def test_tokens_are_read_in_pairs_and_known_again_without_being_kept() -> None:
    hashed = hashlib.sha256(b"another-token-for-tests").hexdigest()
    tokens = parse_tokens(
        f"# who posts events\nhook:{TOKEN}, viewer:sha256:{hashed}\n\noperator: third-token-for-tests\n"
    )
    known = Credentials(tokens)
    assert [token.role for token in tokens] == [Role.HOOK, Role.VIEWER, Role.OPERATOR]
    assert known.bearer(TOKEN) == tokens[0]
    assert known.bearer("another-token-for-tests") == tokens[1]
    assert known.bearer(TOKEN + "x") is known.bearer("") is known.bearer("\udc80") is None
    assert TOKEN not in repr(known)
    assert hashlib.sha256(TOKEN.encode()).hexdigest() not in repr(known)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (TOKEN, "entry 1 is no role:token pair"),
        (f"hook:{TOKEN},boss:{TOKEN}", "entry 2 is no role:token pair"),
        ("hook:t0ken", "entry 1: expected at least 16"),
        ("hook:t0ken-with a blank in it", "entry 1: expected at least 16"),
        (",".join([f"hook:{TOKEN}"] * 1_001), "at most 1000"),
    ],
)
def test_what_is_no_token_is_refused_by_its_number(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as raised:
        parse_tokens(text)
    assert "t0ken" not in str(raised.value)


def test_secrets_are_long_and_few() -> None:
    assert parse_secrets(f"{SECRET}, {SECRET}2") == (SECRET.encode(), f"{SECRET}2".encode())
    with pytest.raises(ValueError, match="at least 32"):
        parse_secrets(TOKEN)
    with pytest.raises(ValueError, match="at most 4"):
        parse_secrets(",".join([SECRET] * (MAX_SECRETS + 1)))


def test_a_secret_of_standard_webhooks_is_base64_of_24_to_64_bytes() -> None:
    def text(secret: bytes) -> str:
        return "whsec_" + base64.b64encode(secret).decode()

    assert parse_secrets(f"{text(bytes(24))},{SECRET},{text(bytes(64))}") == (bytes(24), SECRET.encode(), bytes(64))
    for bad in (text(bytes(23)), text(bytes(65)), "whsec_", "whsec_" + "!" * 40, text(bytes(32))[:-1]):
        with pytest.raises(ValueError, match="24 to 64 bytes in base64 after whsec_") as refused:
            parse_secrets(bad)
        assert bad.removeprefix("whsec_") == "" or bad.removeprefix("whsec_") not in str(refused.value)


def test_settings_put_all_tokens_together_and_never_show_one(tmp_path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"operator:{TOKEN}3\n")
    found = decider_settings(
        {
            "LAKEWRIGHT_TOKEN": TOKEN,
            "LAKEWRIGHT_TOKENS": f"hook:{TOKEN}2",
            "LAKEWRIGHT_TOKENS_FILE": str(file),
            "LAKEWRIGHT_HMAC_SECRETS": SECRET,
            "LAKEWRIGHT_HMAC_WINDOW_S": "60",
            "LAKEWRIGHT_EVENTS_PER_S": "5",
            "LAKEWRIGHT_CALLS_PER_S": "4",
            "LAKEWRIGHT_BODY_TIMEOUT_S": "3",
            "LAKEWRIGHT_SNS_TOPICS": "arn:aws:sns:eu-west-1:1:a, arn:aws:sns:eu-west-1:1:b",
            "LAKEWRIGHT_WEBHOOK_ORIGINS": "events.example.com",
        }
    )
    assert [token.role for token in found.access.credentials.tokens] == [Role.ADMIN, Role.HOOK, Role.OPERATOR]
    assert (found.access.credentials.window_s, found.access.credentials.secrets) == (60, (SECRET.encode(),))
    assert (found.limits.events_per_s, found.limits.calls_per_s, found.limits.body_timeout_s) == (5, 4, 3)
    assert found.access.sns_topics == ("arn:aws:sns:eu-west-1:1:a", "arn:aws:sns:eu-west-1:1:b")
    assert found.access.webhook_origins == ("events.example.com",)
    assert TOKEN not in repr(found)
    assert SECRET not in repr(found)
    assert TokenHash.of(Role.HOOK, f"{TOKEN}2").name == found.access.credentials.tokens[1].name


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LAKEWRIGHT_TOKENS", "hook:s3cret"),
        ("LAKEWRIGHT_TOKENS", "s3cret-without-a-role"),
        ("LAKEWRIGHT_TOKENS_FILE", "/nowhere/s3cret"),
        ("LAKEWRIGHT_HMAC_SECRETS", "s3cret"),
        ("LAKEWRIGHT_HMAC_WINDOW_S", "0"),
        ("LAKEWRIGHT_EVENTS_PER_S", "none"),
        ("LAKEWRIGHT_CALLS_PER_S", "-1"),
        ("LAKEWRIGHT_BODY_TIMEOUT_S", "1e9"),
    ],
)
def test_a_bad_setting_is_refused_by_name_and_secrets_are_not_shown(name: str, value: str) -> None:
    with pytest.raises(InvalidInput, match=name) as raised:
        decider_settings({name: value})
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize(
    "hashed",
    [
        "sha256:" + hashlib.sha256(b"").hexdigest(),
        "sha256:" + hashlib.sha256(b"another-token-for-tests").hexdigest().upper(),
        "sha256:" + hashlib.sha256(b"another-token-for-tests").hexdigest()[:-1],
        "sha256:" + hashlib.sha256(b"another-token-for-tests").hexdigest() + "  -",
    ],
)
def test_a_hash_that_is_none_or_of_nothing_is_refused_and_is_no_token_itself(hashed: str) -> None:
    with pytest.raises(ValueError, match="entry 1: expected 64") as refused:
        parse_tokens(f"admin:{hashed}")
    assert hashed not in str(refused.value)
