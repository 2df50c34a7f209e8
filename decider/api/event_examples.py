"""Examples of events in the API's description: one per kind of sender, short enough to be read."""

from typing import Any

_KEY = "sales/orders/_delta_log/00000000000000000042.json"

_S3 = {
    "Records": [
        {
            "eventVersion": "2.1",
            "eventSource": "aws:s3",
            "eventName": "ObjectCreated:Put",
            "s3": {"bucket": {"name": "lake"}, "object": {"key": _KEY, "size": 1204}},
        }
    ]
}

_GCS = {
    "message": {
        "attributes": {"eventType": "OBJECT_FINALIZE", "bucketId": "lake", "objectId": _KEY},
        "messageId": "2070443601311540",
    },
    "subscription": "projects/myproject/subscriptions/lake-commits",
}

_AZURE = [
    {
        "subject": f"/blobServices/default/containers/lake/blobs/{_KEY}",
        "eventType": "Microsoft.Storage.BlobRenamed",
        "data": {"destinationUrl": f"https://lakeacct.dfs.core.windows.net/lake/{_KEY}"},
    }
]

_CLOUDEVENT = {
    "specversion": "1.0",
    "type": "com.example.lake.commit",
    "source": "/writers/orders",
    "id": "A234-1234-1234",
    "data": {"table": "sales.orders", "version": 42},
}

_EXAMPLES = {
    "s3": {"summary": "A notification of S3", "value": _S3},
    "gcs": {"summary": "A push message of Pub/Sub", "value": _GCS},
    "azure": {"summary": "Events of Azure's Event Grid", "value": _AZURE},
    "cloudevents": {"summary": "Any event, wrapped as a CloudEvent", "value": _CLOUDEVENT},
    "lakewright": {"summary": "Our own shape", "value": {"table": "sales.orders", "version": 42}},
    "list": {"summary": "Several tables", "value": [{"table": "s3://lake/sales/orders"}]},
}

BODY: dict[str, Any] = {
    "requestBody": {
        "description": "An event, or a list of up to 10,000, in a shape of docs/events.",
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "description": "Any of the known shapes; one event or a batch of up to 10,000.",
                    "oneOf": [{"type": "object"}, {"type": "array", "items": {"type": "object"}, "maxItems": 10_000}],
                },
                "examples": _EXAMPLES,
            }
        },
    }
}
