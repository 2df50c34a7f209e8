"""The options of a decider's store, translated for Hadoop: one setting serves both kinds of processes.

Hadoop names one bucket's options `fs.s3a.bucket.NAME.…`; they override all buckets' options, as Lakewright's do.
Options of Hadoop that are not listed here are passed unchanged (`fs.s3a.…`).
"""

from collections.abc import Mapping

from shared.errors import InvalidInput
from shared.paths.store_options import StoreOptions

_PLAIN = {
    "access_key_id": "access.key",
    "secret_access_key": "secret.key",
    "session_token": "session.token",
    "token": "session.token",
    "region": "endpoint.region",
    "default_region": "endpoint.region",
    "endpoint": "endpoint",
    "endpoint_url": "endpoint",
    "endpoint_url_s3": "endpoint",
}
"""An option without its prefix `aws_`, and what Hadoop calls it."""

_IGNORED = frozenset(
    {"allow_http", "allow_invalid_certificates", "connect_timeout", "timeout", "unsigned_payload", "imdsv1_fallback"}
)
"""Options of the decider's HTTP client that have no counterpart or need none: Hadoop reads `http:` off the endpoint."""

_SDK = "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
_ANONYMOUS = "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
_GIVEN = "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
_TEMPORARY = "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider"

BASE: Mapping[str, str] = {
    # Locations are written with s3:// throughout; the file system is the same.
    "fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    "fs.s3n.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    # Environment, web identity, profile, container, instance: in the order of Amazon's own programs.
    "fs.s3a.aws.credentials.provider": _SDK,
    # Commits are put with a condition (see `logstore`); it is Hadoop's default, and nothing may turn it off.
    "fs.s3a.create.conditional.enabled": "true",
    # Uploads are small and many; disk is cheaper than heap.
    "fs.s3a.fast.upload.buffer": "disk",
}
"""Defaults for all buckets unless an option overrides them."""


def hadoop_settings(options: StoreOptions) -> dict[str, str]:
    """Return Hadoop's configuration for the options of S3.

    Raises InvalidInput for an option without a Hadoop equivalent: ignoring it would read another location than meant.
    """
    settings = dict(BASE) | _translated("fs.s3a.", options.of("s3"))
    for bucket, hadoop in options.buckets("s3").items():
        settings |= _translated(f"fs.s3a.bucket.{bucket}.", hadoop)
    return settings


def _translated(prefix: str, options: Mapping[str, str]) -> dict[str, str]:
    hadoop: dict[str, str] = {}
    for option, value in options.items():
        name = option.lower().removeprefix("aws_")
        if option.startswith("fs.s3a."):
            hadoop[prefix + option.removeprefix("fs.s3a.")] = value
        elif name in _PLAIN:
            hadoop[prefix + _PLAIN[name]] = value
        elif name == "virtual_hosted_style_request":
            hadoop[prefix + "path.style.access"] = "false" if _is_true(value) else "true"
        elif name == "skip_signature":
            if _is_true(value):
                hadoop[prefix + "aws.credentials.provider"] = _ANONYMOUS
        elif name not in _IGNORED:
            raise InvalidInput(
                f"LAKEWRIGHT_STORE_OPTIONS: {option!r} has no equivalent in Hadoop; give the actor Hadoop's own "
                "setting (fs.s3a.…) instead",
                field=option,
                allowed=", ".join(sorted((*_PLAIN, "virtual_hosted_style_request", "skip_signature", *_IGNORED))),
            )
    if f"{prefix}access.key" in hadoop:
        provider = _TEMPORARY if f"{prefix}session.token" in hadoop else _GIVEN
        hadoop.setdefault(f"{prefix}aws.credentials.provider", provider)
    # By default the decider's client addresses a custom endpoint by path, and so must Hadoop.
    if f"{prefix}endpoint" in hadoop:
        hadoop.setdefault(f"{prefix}path.style.access", "true")
        hadoop.setdefault(f"{prefix}endpoint.region", "us-east-1")
    return hadoop


def _is_true(value: str) -> bool:
    return value.strip().lower() in ("true", "1", "yes", "on", "y", "t")
