"""The sample of every shape is taken, damaged ones are refused by name, and the guides show what is accepted."""

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

from decider.api.sns_confirmation import ConfirmationResult
from decider.events.detect import FORMATS, parse_body, parse_value
from decider.events.field_reader import MAX_WRAPPINGS
from decider.events.table_hint import MAX_BATCH, IgnoredReason, ParsedEvents, SubscriptionConfirmation, TableHint
from shared.errors import InvalidInput
from tests.support.event_samples import FOLDER, SAMPLES, Damage, Sample, damages, dumped


def test_every_file_is_a_sample_and_every_shape_has_one() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == {sample.file for sample in SAMPLES}
    assert {shape.source for shape in FORMATS} <= {sample.source for sample in SAMPLES}
    assert sum(len(list(damages(sample))) for sample in SAMPLES) >= 200


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.file)
def test_the_sample_is_taken_as_what_it_is(sample: Sample) -> None:
    assert parse_body(dumped(sample.body)) == parse_body(dumped(sample.body), source=sample.source) == sample.taken


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.file)
def test_a_damaged_sample_is_refused_by_the_field_and_what_was_expected(sample: Sample) -> None:
    """One test for all damages of a sample: there are hundreds, and a test of each costs more than what it tests."""
    for damage in damages(sample):
        refusal = refusal_of(damage, sample.source)
        assert refusal is not None, damage.name
        assert (refusal.field or "").startswith(damage.field), damage.name
        assert refusal.allowed, damage.name
        if (sample.source, damage.name) != ("minio", "EventName missing"):  # which makes it a good notification of S3
            assert refusal_of(damage) is not None, damage.name


def refusal_of(damage: Damage, source: str | None = None) -> InvalidInput | None:
    try:
        parse_body(damage.body, source=source)
    except InvalidInput as refusal:
        return refusal
    return None


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.file)
def test_a_cloudevent_in_binary_mode_holds_any_other_event(sample: Sample) -> None:
    headers = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/w", "ce-type": "com.example", "host": "x"}
    assert parse_body(dumped(sample.body), headers=headers) == sample.taken
    with pytest.raises(InvalidInput, match="id is nothing"):
        parse_body(dumped(sample.body), headers={"ce-specversion": "1.0"})


def test_a_batch_may_hold_events_of_many_senders() -> None:
    single = [sample for sample in SAMPLES if isinstance(sample.body, dict)]
    taken = parse_value([sample.body for sample in single])
    assert set(taken.hints) == {hint for sample in single for hint in sample.taken.hints}
    assert isinstance(taken.handshake, SubscriptionConfirmation)


def test_a_body_asks_for_one_handshake_and_a_short_one() -> None:
    (code,) = next(sample.body for sample in SAMPLES if sample.file == "azure_validation")
    topic = next(sample.body for sample in SAMPLES if sample.file == "sns_subscription")
    assert parse_value([code, code]).handshake == parse_value(code).handshake
    for two in ([code, topic], [topic, topic | {"SubscribeURL": "https://elsewhere"}]):
        with pytest.raises(InvalidInput, match="two handshakes"):
            parse_value(two)
    with pytest.raises(InvalidInput, match="at most 256"):
        parse_value(code | {"data": {"validationCode": "x" * 257}})


def wrapped(times: int) -> dict[str, Any]:
    event: dict[str, Any] = {"table": "sales.orders"}
    for number in range(times):
        event = {"specversion": "1.0", "id": str(number), "source": "/w", "type": "t", "data": event}
    return event


def test_events_are_unwrapped_so_deep_and_no_deeper() -> None:
    assert parse_value(wrapped(MAX_WRAPPINGS)).hints == (TableHint(name="sales.orders"),)
    with pytest.raises(InvalidInput, match="wrapped in each other") as refusal:
        parse_value(wrapped(MAX_WRAPPINGS + 1))
    assert refusal.value.field == ".".join(["data"] * (MAX_WRAPPINGS + 1))


def test_the_events_of_all_wrappings_together_are_bounded() -> None:
    event = {"dag_id": "d", "state": "success", "outlets": ["sales.orders"] * (MAX_BATCH // 2)}
    assert parse_value([event, event]).hints == (TableHint(name="sales.orders"),)
    with pytest.raises(InvalidInput, match="at most 10000"):
        parse_value([event, event, {"table": "sales.orders"}])


def test_damage_inside_a_wrapping_is_named_with_its_whole_place() -> None:
    record = {"messageId": "1", "body": json.dumps({"Type": "Notification", "TopicArn": "a", "MessageId": "b"})}
    inner = {"Type": "Notification", "TopicArn": "a", "MessageId": "b", "Message": '{"Records": [{"eventName": 1}]}'}
    for body, field in (
        (record, "Records[0].body.Message"),
        (record | {"body": json.dumps(inner)}, "Records[0].body.Message.Records[0].eventName"),
        (record | {"body": "{"}, "Records[0].body"),
    ):
        with pytest.raises(InvalidInput) as refusal:
            parse_value({"Records": [body]})
        assert refusal.value.field == field


IN_FOLDER = TableHint(metadata_folder="s3://lake/sales/orders/metadata")
OTHERS = [
    ("eventbridge", {"detail-type": "Object Deleted"}, "unknown_event"),
    ("eventbridge", {"source": "aws.ec2"}, "unknown_event"),
    ("glue", {"detail-type": "Glue Data Catalog Database State Change"}, "unknown_event"),
    ("glue", {"detail": {"databaseName": "a", "tableName": "b", "typeOfChange": "DeleteTable"}}, "not_a_commit"),
    (
        "glue",
        {"detail": {"databaseName": "a", "tableName": "b/c", "typeOfChange": "UpdateTable"}},
        "invalid_table_name",
    ),
    ("lakekeeper", {"namespace": "sales..eu"}, "invalid_table_name"),
    ("iceberg", {"table-name": "orders"}, "invalid_table_name"),
    ("polaris_webhook", {"table_identifier": "../orders"}, "invalid_table_name"),
    (
        "polaris_notification",
        {"payload": {"table-name": "t", "table-uuid": "u", "metadata-location": "00043.metadata.json"}},
        "not_a_table_location",
    ),
    ("sns", {"Type": "UnsubscribeConfirmation"}, "unknown_event"),
    ("lakekeeper", {"type": "dropTable", "data": None}, "not_a_commit"),
    ("iceberg", {"report-type": "scan-report"}, "not_a_commit"),
    ("polaris_notification", {"notification-type": "VALIDATE"}, "not_a_commit"),
    ("polaris", {"data": {"event_type": "AFTER_LOAD_TABLE"}}, "not_a_commit"),
    ("azure_cloudevent", {"type": "Microsoft.Storage.BlobDeleted"}, "unknown_event"),
    ("cloudevents", {"data": None}, "unknown_event"),
    ("airflow", {"state": "failed", "outlets": ["a.b"]}, "not_a_commit"),
    ("openlineage", {"eventType": "START", "outputs": [{"namespace": "s3://b", "name": "t"}]}, "not_a_commit"),
    ("openlineage", {"outputs": [{"namespace": "bigquery", "name": "a/b"}]}, "invalid_table_name"),
    ("openlineage", {"outputs": [{"namespace": "s3://b", "name": "../t"}]}, "not_a_table_location"),
]


@pytest.mark.parametrize(("file", "changes", "reason"), OTHERS)
def test_a_good_event_that_is_no_commit_is_counted_with_its_reason(
    file: str, changes: dict[str, Any], reason: str
) -> None:
    body = next(sample.body for sample in SAMPLES if sample.file == file)
    assert parse_value(body | changes) == ParsedEvents(ignored=((reason, 1),))


@pytest.mark.parametrize(
    ("key", "taken"),
    [
        # Of a catalog: the deciders know which table has its metadata in which folder.
        ("sales/orders/metadata/00043-9c1f.metadata.json", ParsedEvents((IN_FOLDER,))),
        ("sales/orders/metadata/00043-9c1f.gz.metadata.json", ParsedEvents((IN_FOLDER,))),
        ("elsewhere/00043-9c1f.metadata.json", ParsedEvents((TableHint(metadata_folder="s3://lake/elsewhere"),))),
        ("sales/orders/metadata/v43.metadata.json", ParsedEvents((TableHint("s3://lake/sales/orders"),))),
        ("sales/orders/metadata/v43.gz.metadata.json", ParsedEvents((TableHint("s3://lake/sales/orders"),))),
        ("metadata/v43.metadata.json", ParsedEvents((TableHint(metadata_folder="s3://lake/metadata"),))),
        ("00043-9c1f.metadata.json", ParsedEvents(ignored=(("not_a_commit", 1),))),
        ("sales/../orders/metadata/v43.metadata.json", ParsedEvents(ignored=(("invalid_object_key", 1),))),
        ("sales/orders/metadata/snap-43.avro", ParsedEvents(ignored=(("not_a_commit", 1),))),
    ],
)
def test_a_metadata_file_in_a_bucket_leads_to_a_table_or_to_its_folder(key: str, taken: ParsedEvents) -> None:
    body = next(sample.body for sample in SAMPLES if sample.file == "eventbridge")
    body["detail"]["object"]["key"] = key
    assert parse_value(body) == taken


@pytest.mark.parametrize(
    ("file", "changes", "path"),
    [
        ("lakekeeper", {"namespace": "a\x1fb.c"}, ("a", "b.c", "orders")),
        ("lakekeeper", {"namespace": "a.b"}, ("a", "b", "orders")),
        ("iceberg", {"table-name": "thrift://host:9083/sales.orders"}, ("sales", "orders")),
        ("iceberg", {"table-name": "lake.a.b.orders"}, ("a", "b", "orders")),
        ("polaris_webhook", {"table_identifier": "a.b.orders"}, ("a", "b", "orders")),
        ("polaris_webhook", {"table_name": "or ders", "namespace": ["a.b", "c"]}, ("a.b", "c", "or ders")),
    ],
)
def test_an_event_of_a_catalog_names_namespaces_and_table(
    file: str, changes: dict[str, Any], path: tuple[str, ...]
) -> None:
    body = next(sample.body for sample in SAMPLES if sample.file == file)
    (hint,) = parse_value(body | changes).hints
    assert (hint.location, hint.catalog_path) == (None, path)


def test_buckets_and_containers_can_stand_for_other_places() -> None:
    found = {
        hint.location
        for sample in SAMPLES
        for hint in parse_value(
            sample.body, bucket_locations={"lake": "file:///lake", "lakeacct/lake": "file:///azure"}
        ).hints
        if hint.version is not None and hint.location is not None and sample.file != "lakewright_commit"
    }
    assert {str(place).rpartition("/sales/")[0] for place in found} == {"file:///lake", "file:///azure"}


def test_a_symlink_names_the_table_where_its_place_is_unknown() -> None:
    body = next(sample.body for sample in SAMPLES if sample.file == "openlineage")
    body["outputs"][0]["namespace"] = "hive://metastore:9083"
    assert parse_value(body).hints == (TableHint(name="sales.orders"), TableHint(name="sales.returns"))


def test_a_push_message_without_attributes_of_storage_holds_another_event() -> None:
    body = next(sample.body for sample in SAMPLES if sample.file == "gcs")
    body["message"]["attributes"] = {}
    body["message"]["data"] = "eyJ0YWJsZSI6ICJzYWxlcy5vcmRlcnMifQ=="
    assert parse_value(body).hints == (TableHint(name="sales.orders"),)
    body["message"]["data"] = "not base64"
    with pytest.raises(InvalidInput, match="base64"):
        parse_value(body)


PAGES = Path(__file__).resolve().parents[4] / "docs" / "events"
PLACES = ("outside_allowed_roots", "table_not_found", "location_unreadable", "unknown_table_limit")
GUIDES = {path.name: path.read_text() for path in PAGES.glob("*.md")}


@pytest.mark.parametrize("source", [shape.source for shape in FORMATS if shape.source != "lakewright"])
def test_every_source_has_a_guide_that_names_its_address(source: str) -> None:
    assert any(f"/v1/events/{source}" in text for text in GUIDES.values())


def test_the_index_leads_to_every_guide_and_every_reason_is_explained() -> None:
    index, explained = GUIDES["README.md"], (PAGES.parent / "refusals.md").read_text()
    assert all(f"]({name})" in index for name in GUIDES if name != "README.md")
    reasons = {*IgnoredReason, *ConfirmationResult, "unknown_table", *PLACES} - {ConfirmationResult.CONFIRMED}
    assert all(f"`{reason}`" in explained for reason in reasons)


def test_links_lead_to_files() -> None:
    links = [
        (name, target) for name, text in GUIDES.items() for target in re.findall(r"\]\((?!https:)([^)#]+)\)", text)
    ]
    assert {name for name, _ in links} >= {"README.md"}
    assert [(name, target) for name, target in links if not (PAGES / target).exists()] == []


def test_events_in_the_guides_are_understood() -> None:
    bodies = [
        *re.findall(r"-d '(\{.*?\})'", GUIDES["lakewright.md"] + GUIDES["cloudevents.md"]),
        *re.findall(r"```json\n(.*?)```", GUIDES["lakewright.md"], re.DOTALL),
    ]
    assert len(bodies) == 3
    assert all(parse_value(json.loads(body)).hints for body in bodies)


def test_the_callback_of_airflow_is_python() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", GUIDES["airflow.md"], re.DOTALL)
    assert any(isinstance(node, ast.FunctionDef) for node in ast.parse(code).body)


def test_json_in_commands_is_json() -> None:
    found = [text for guide in GUIDES.values() for text in re.findall(r"'(\{\s*\".*?\})'", guide, re.DOTALL)]
    assert len(found) > 6
    for text in found:
        json.loads(text)
