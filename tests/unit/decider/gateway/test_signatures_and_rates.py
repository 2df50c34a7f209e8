"""Signed calls are believed once and in time; a client that is too fast waits; a topic is confirmed at its own host."""

import asyncio
import hmac
from types import SimpleNamespace

import httpx
import pytest
from starlette.datastructures import Headers

import decider.gateway.signatures as signatures_module
from decider.api.sns_confirmation import ConfirmationResult, SubscriptionConfirmer, is_page_of
from decider.events.table_hint import SubscriptionConfirmation
from decider.gateway.credentials import Credentials, parse_secrets
from decider.gateway.rate_limit import Rate
from decider.gateway.signatures import InvalidSignature, ReplayCacheFull, ReplayDetected, Signatures
from shared.errors import RetryableError
from tests.support.event_samples import ARN, CONFIRM_URL
from tests.support.webhook_signing import signed_headers

OLD, NEW = b"the-old-secret-of-thirty-two-characters", b"the-new-secret-of-thirty-two-characters"
NOW_S = 1_767_621_787
BODY = b'{"table": "sales.orders"}'
VALID = signed_headers(NEW, at_s=NOW_S, body=BODY)["webhook-signature"]


class Clock:
    """Seconds since 1970 that a test sets."""

    def __init__(self) -> None:
        self.now_s = float(NOW_S)

    def __call__(self) -> float:
        return self.now_s


def checker(clock: Clock, *secrets: bytes, max_remembered: int = 10) -> Signatures:
    return Signatures(Credentials(secrets=secrets or (OLD, NEW), window_s=300), clock, max_remembered=max_remembered)


def signed(*secrets: bytes, at_s: int = NOW_S, body: bytes = BODY) -> Headers:
    return Headers(signed_headers(*secrets, at_s=at_s, body=body))


def test_either_secret_will_do_while_one_replaces_the_other() -> None:
    clock = Clock()
    checker(clock).check(signed(OLD), BODY)
    checker(clock).check(signed(NEW), BODY)
    checker(clock, NEW).check(signed(OLD, NEW), BODY)
    with pytest.raises(InvalidSignature, match="invalid signature"):
        checker(clock, NEW).check(signed(OLD), BODY)


@pytest.mark.parametrize("away_s", [-300, 300])
def test_the_time_may_be_away_by_the_window_and_no_more(away_s: int) -> None:
    clock = Clock()
    checker(clock).check(signed(NEW, at_s=NOW_S + away_s), BODY)
    with pytest.raises(InvalidSignature, match="more than 300 s") as refusal:
        checker(clock).check(signed(NEW, at_s=NOW_S + away_s + (1 if away_s > 0 else -1)), BODY)
    assert refusal.value.field == "webhook-timestamp"


@pytest.mark.parametrize(
    "changes",
    [
        {"webhook-timestamp": str(NOW_S + 1)},
        {"webhook-timestamp": ""},
        {"webhook-timestamp": "-1"},
        {"webhook-timestamp": "\u0661"},
        {"webhook-timestamp": f"{NOW_S}000"},
        {"webhook-timestamp": "9" * 5_000},
        {"webhook-id": ""},
        {"webhook-id": "msg_other"},
        {"webhook-signature": ""},
        {"webhook-signature": "v1,"},
        {"webhook-signature": "v1,zz"},
        {"webhook-signature": "v1"},
        {"webhook-signature": VALID.removeprefix("v1,")},
        {"webhook-signature": VALID.replace("v1,", "v1a,")},
        {"webhook-signature": VALID[:-4]},
        {"webhook-signature": "v1,zz " * 8 + VALID},
    ],
)
def test_what_is_signed_otherwise_is_refused(changes: dict[str, str]) -> None:
    headers = dict(signed(NEW))
    mixed = Headers(raw=[(name.encode(), value.encode()) for name, value in (headers | changes).items()])
    checker(Clock()).check(Headers(headers), BODY)
    with pytest.raises(InvalidSignature):
        checker(Clock()).check(mixed, BODY)
    with pytest.raises(InvalidSignature):
        checker(Clock()).check(signed(NEW), BODY + b" ")


def test_one_signature_fits_no_second_id_and_body() -> None:
    """`a.<time>.<body>` reads as two messages if an id may hold a dot."""
    body = f"{NOW_S}.{BODY.decode()}".encode()
    moved = dict(signed_headers(NEW, at_s=NOW_S, body=body, message_id="a")) | {"webhook-id": f"a.{NOW_S}"}
    with pytest.raises(InvalidSignature, match="without a dot") as refusal:
        checker(Clock()).check(Headers(moved), BODY)
    assert refusal.value.field == "webhook-id"


def test_a_timestamp_in_another_notation_is_a_replay() -> None:
    signatures = checker(Clock())
    signatures.check(signed(NEW), BODY)
    with pytest.raises(ReplayDetected):
        signatures.check(Headers(dict(signed(NEW)) | {"webhook-timestamp": f"00{NOW_S}"}), BODY)


def test_a_signed_body_that_is_no_text_is_refused() -> None:
    with pytest.raises(InvalidSignature, match="invalid signature"):
        checker(Clock()).check(signed(NEW), b"\xff" + BODY)


def test_the_example_of_standard_webhooks_is_valid() -> None:
    """Test vector of the specification's own libraries: secret, id, time, body and signature are theirs."""
    clock = Clock()
    clock.now_s = 1_614_265_330.0
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1a,AA== v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    secrets = parse_secrets("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    assert checker(clock, *secrets).check(Headers(headers), b'{"test": 2432232314}')


def test_a_signature_is_hmac_sha256_of_id_time_and_body() -> None:
    """Computed by `printf 'msg_1.1767621787.{}' | openssl dgst -sha256 -hmac <secret> -binary | base64`."""
    headers = {
        "webhook-id": "msg_1",
        "webhook-timestamp": "1767621787",
        "webhook-signature": "v1,KEFhNirVsI5nSvL84xg6V8una7AWa70MPIl+la/gdIk=",
    }
    assert checker(Clock(), b"s3cret-for-tests-only-of-32-chars").check(Headers(headers), b"{}")


def test_every_signature_is_compared_with_every_secret_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return hmac.compare_digest(one, other)

    monkeypatch.setattr(signatures_module, "hmac", SimpleNamespace(compare_digest=compare))
    checker(Clock()).check(signed(OLD, NEW), BODY)
    assert len(compared) == 4


def test_a_signed_call_is_taken_once_under_whichever_secret() -> None:
    clock = Clock()
    signatures = checker(clock)
    signatures.check(signed(NEW), BODY)
    for again in (signed(NEW), signed(OLD), signed(OLD, NEW)):
        with pytest.raises(ReplayDetected, match="replayed signature"):
            signatures.check(again, BODY)
    signatures.check(signed(NEW, at_s=NOW_S + 1), BODY)
    clock.now_s += 300
    with pytest.raises(ReplayDetected):
        signatures.check(signed(NEW, at_s=NOW_S + 1), BODY)


def test_the_memory_of_signed_calls_is_bounded_and_clears_when_their_time_is_over() -> None:
    clock = Clock()
    signatures = checker(clock, max_remembered=3)
    for number in range(3):
        signatures.check(signed(NEW, body=b"%d" % number), b"%d" % number)
    with pytest.raises(ReplayCacheFull, match="Too many"):
        signatures.check(signed(NEW), BODY)
    clock.now_s += 601
    signatures.check(signed(NEW, at_s=NOW_S + 601), BODY)


def test_who_waits_as_long_as_told_may_call_and_others_are_apart() -> None:
    rate = Rate(0.5)
    assert rate.wait_s("a", 0.0) == 0
    wait_s = rate.wait_s("a", 0.0)
    assert wait_s == pytest.approx(2.0)
    assert rate.wait_s("b", 0.0) == 0
    assert rate.wait_s("a", wait_s) == 0


def test_only_so_many_clients_are_remembered() -> None:
    rate = Rate(0.5, max_clients=2)
    for client in ("a", "b", "c"):
        assert rate.wait_s(client, 0.0) == 0
    assert rate.wait_s("c", 0.0) > 0
    assert rate.wait_s("a", 0.0) == 0


OTHER_PAGES = [
    CONFIRM_URL.replace("https", "http"),
    CONFIRM_URL.replace("sns.eu-west-1.amazonaws.com", "sns.eu-west-1.amazonaws.com.example.com"),
    CONFIRM_URL.replace("sns.eu-west-1", "sns.us-east-1"),
    CONFIRM_URL.replace("https://", "https://user@"),
    CONFIRM_URL.replace("amazonaws.com/", "amazonaws.com:8443/"),
    CONFIRM_URL.replace(".com/?", ".com/latest/meta-data?"),
    CONFIRM_URL.replace("Action=ConfirmSubscription", "Action=Unsubscribe"),
    CONFIRM_URL + "&Action=Unsubscribe",
    CONFIRM_URL.replace("lake-commits", "other"),
    "https://169.254.169.254/",
    "https://[",
    "",
]


@pytest.mark.parametrize("url", OTHER_PAGES)
def test_only_the_topics_own_page_is_visited(url: str) -> None:
    assert is_page_of(ARN, CONFIRM_URL)
    assert not is_page_of(ARN, url)
    assert (
        asyncio.run(SubscriptionConfirmer((ARN,), refusing()).confirm(SubscriptionConfirmation(ARN, url)))
        is ConfirmationResult.BAD_URL
    )


@pytest.mark.parametrize("behind", ["\n", "&a=\tb", "&a=" + "b" * 70_000])
def test_a_page_that_is_no_address_is_not_visited(behind: str) -> None:
    asked = SubscriptionConfirmation(ARN, CONFIRM_URL + behind)
    assert asyncio.run(SubscriptionConfirmer((ARN,), refusing()).confirm(asked)) is ConfirmationResult.BAD_URL


@pytest.mark.parametrize("topic", ["", "lake", "arn:aws:sqs:eu-west-1:1:q", "arn:evil:sns:eu-west-1:1:t"])
def test_what_is_no_topic_has_no_page(topic: str) -> None:
    assert not is_page_of(topic, CONFIRM_URL)


def test_only_listed_topics_are_confirmed() -> None:
    visited: list[str] = []

    def visit(request: httpx.Request) -> httpx.Response:
        visited.append(str(request.url))
        return httpx.Response(200)

    asked = SubscriptionConfirmation(ARN, CONFIRM_URL)
    assert asyncio.run(SubscriptionConfirmer((), refusing()).confirm(asked)) is ConfirmationResult.NOT_LISTED
    assert (
        asyncio.run(SubscriptionConfirmer((ARN,), httpx.MockTransport(visit)).confirm(asked))
        is ConfirmationResult.CONFIRMED
    )
    assert visited == [CONFIRM_URL]


@pytest.mark.parametrize("status", [301, 403, 500])
def test_a_page_that_does_not_confirm_is_tried_again_by_the_sender(status: int) -> None:
    answering = httpx.MockTransport(lambda _: httpx.Response(status, headers={"location": "http://127.0.0.1/"}))
    with pytest.raises(RetryableError, match=str(status)):
        asyncio.run(SubscriptionConfirmer((ARN,), answering).confirm(SubscriptionConfirmation(ARN, CONFIRM_URL)))


def refusing() -> httpx.MockTransport:
    def visit(request: httpx.Request) -> httpx.Response:
        raise AssertionError(f"visited {request.url}")

    return httpx.MockTransport(visit)
