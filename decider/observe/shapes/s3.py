"""S3 notifications: of all objects written to a bucket only a commit file in a Delta log is a hint.

Keys arrive form-url-encoded and are decoded exactly once; a second time would turn an escaped percent sign into
another key. Any bucket can be mapped onto a place of another kind, such as a directory that is shown as a bucket.
"""

import re
from collections.abc import Mapping
from urllib.parse import unquote_plus

from decider.observe.delta_listing import MAX_VERSION
from decider.observe.locations import key_location
from decider.observe.shapes.hint import Hint, Ignored, Taken, bounded, fields_of, text_of
from shared.errors import InvalidInput

COMMIT_KEY = re.compile(r"(.+)/_delta_log/(\d{20})\.json", re.ASCII | re.DOTALL)
"""The only keys that matter; checksums, checkpoints, staged, compacted and temporary files do not match."""

WRITTEN = frozenset({"ObjectCreated:Put", "ObjectCreated:CompleteMultipartUpload", "ObjectCreated:Copy"})
"""Events after which an object is there; MinIO and some proxies put `s3:` before the name."""

TEST_EVENT = "s3:TestEvent"

NO_BUCKETS: Mapping[str, str] = {}


def matches(body: object) -> bool:
    """Say whether a body looks like this shape."""
    return isinstance(body, dict) and ("Records" in body or body.get("Event") == TEST_EVENT)


def take(body: object, bucket_locations: Mapping[str, str] = NO_BUCKETS) -> Taken:
    """Turn a notification into hints; `bucket_locations` maps bucket names to URI prefixes, default `s3://<bucket>`.

    Raises InvalidInput naming the field that is missing or wrong.
    """
    notification = fields_of(body, "body")
    if notification.get("Event") == TEST_EVENT:
        return Taken.of([Ignored.TEST_EVENT])
    records = bounded(notification.get("Records"), "Records")
    return Taken.of([_record(item, f"Records[{index}]", bucket_locations) for index, item in enumerate(records)])


def _record(item: object, at: str, bucket_locations: Mapping[str, str]) -> Hint | Ignored:
    record = fields_of(item, at)
    event = text_of(record.get("eventName"), f"{at}.eventName")
    about = fields_of(record.get("s3"), f"{at}.s3")
    bucket = text_of(fields_of(about.get("bucket"), f"{at}.s3.bucket").get("name"), f"{at}.s3.bucket.name")
    encoded = text_of(fields_of(about.get("object"), f"{at}.s3.object").get("key"), f"{at}.s3.object.key")
    if event.removeprefix("s3:") not in WRITTEN:
        return Ignored.UNKNOWN_EVENT
    try:
        key = unquote_plus(encoded, errors="strict")
    except UnicodeDecodeError:
        return Ignored.BAD_KEY
    return hint_of_key(bucket_locations.get(bucket, f"s3://{bucket}"), key)


def hint_of_key(prefix: str, key: str) -> Hint | Ignored:
    """Return the hint that a written object is, if its key is a commit's and can be a place below the prefix."""
    match = COMMIT_KEY.fullmatch(key)
    if match is None:
        return Ignored.NOT_A_COMMIT
    version = int(match[2])
    try:
        location = key_location(prefix, match[1])
    except InvalidInput:
        return Ignored.BAD_KEY
    return Hint(location, version=version) if version <= MAX_VERSION else Ignored.BAD_KEY
