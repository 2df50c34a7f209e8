"""What the decider's store is told, the actor's Hadoop is told, too, or the start is refused."""

import pytest

from actor.jvm.s3a import BASE, hadoop_settings
from shared.errors import InvalidInput
from shared.paths.store_options import StoreOptions

MINIO = {"endpoint": "http://127.0.0.1:9000", "allow_http": "true", "aws_access_key_id": "k", "secret_access_key": "s"}


def test_without_options_amazons_own_order_of_credentials_applies() -> None:
    assert hadoop_settings(StoreOptions()) == dict(BASE)
    assert BASE["fs.s3a.aws.credentials.provider"].endswith("DefaultCredentialsProvider")


def test_an_own_endpoint_is_spoken_to_by_path_with_the_given_keys() -> None:
    found = hadoop_settings(StoreOptions({"": MINIO}))
    assert found["fs.s3a.endpoint"] == "http://127.0.0.1:9000"
    assert (found["fs.s3a.access.key"], found["fs.s3a.secret.key"]) == ("k", "s")
    assert found["fs.s3a.path.style.access"] == "true"
    assert found["fs.s3a.aws.credentials.provider"].endswith("SimpleAWSCredentialsProvider")
    with_token = hadoop_settings(StoreOptions({"": {**MINIO, "session_token": "t"}}))
    assert with_token["fs.s3a.aws.credentials.provider"].endswith("TemporaryAWSCredentialsProvider")


def test_a_bucket_has_options_of_its_own_and_other_stores_are_none_of_hadoops_business() -> None:
    options = {"s3://": {"region": "eu-west-1"}, "s3://open": {"skip_signature": "true"}, "gs://": {"token": "x"}}
    found = hadoop_settings(StoreOptions(options))
    assert found["fs.s3a.endpoint.region"] == "eu-west-1"
    assert found["fs.s3a.bucket.open.aws.credentials.provider"].endswith("AnonymousAWSCredentialsProvider")
    assert not any("session" in name for name in found)


def test_hadoops_own_settings_pass_and_what_cannot_be_said_is_refused() -> None:
    found = hadoop_settings(StoreOptions({"s3://b": {"fs.s3a.connection.maximum": "10"}}))
    assert found["fs.s3a.bucket.b.connection.maximum"] == "10"
    with pytest.raises(InvalidInput, match="'conditional_put'"):
        hadoop_settings(StoreOptions({"": {"conditional_put": "etag"}}))
