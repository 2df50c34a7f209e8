"""Options of a store hold for all places, for one kind or for one bucket, and the narrower one wins."""

from shared.paths.store_options import StoreOptions

OPTIONS = StoreOptions(
    {
        "": {"region": "eu", "fs.s3a.threads.max": "9"},
        "s3://": {"region": "us", "endpoint": "http://minio"},
        "s3://lake": {"endpoint": "http://other"},
    }
)


def test_the_narrower_place_wins_option_by_option() -> None:
    assert OPTIONS.of("s3", "lake") == {"region": "us", "endpoint": "http://other", "fs.s3a.threads.max": "9"}
    assert OPTIONS.of("s3") == {"region": "us", "endpoint": "http://minio", "fs.s3a.threads.max": "9"}
    assert OPTIONS.of("gs", "lake") == {"region": "eu", "fs.s3a.threads.max": "9"}


def test_at_a_location_the_options_of_hadoop_are_left_out() -> None:
    assert OPTIONS.at("s3://lake/t/x") == {"region": "us", "endpoint": "http://other"}
    assert OPTIONS.at("gs://lake/t") == {"region": "eu"}


def test_buckets_of_a_scheme_are_listed_by_their_names() -> None:
    assert OPTIONS.buckets("s3") == {"lake": {"endpoint": "http://other"}}
    assert OPTIONS.buckets("gs") == {}
