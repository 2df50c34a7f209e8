"""Example events of the OpenAPI document; docs/events has one of each kind of sender."""

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

_EXAMPLES = {
    "s3": {"summary": "S3 event notification", "value": _S3},
    "lakewright": {"summary": "Lakewright event", "value": {"table": "sales.orders", "version": 42}},
    "list": {"summary": "Batch", "value": [{"table": "s3://lake/sales/orders"}]},
}

BODY: dict[str, Any] = {
    "requestBody": {
        "description": "One event or a batch of up to 10,000, in a format of docs/events.",
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "description": "Any supported format; one event or a batch of up to 10,000.",
                    "oneOf": [{"type": "object"}, {"type": "array", "items": {"type": "object"}, "maxItems": 10_000}],
                },
                "examples": _EXAMPLES,
            }
        },
    }
}
