"""What runs in the cluster besides the chart: MinIO with notifications, and a pod that writes, reads and calls."""

import json
from typing import Any

from tests.cluster.cluster import FIRST, Cluster
from tests.cluster.images import DECIDER, MINIO_IMAGE, TAG
from tests.cluster.machine import COMMAND_S

NAMESPACE = "lake"
HOST = "kubernetes.io/hostname"
RELEASE = "x"
TOKEN = "a-token-of-thirty-two-characters"  # noqa: S105 - of this cluster alone
KEYS = {"AWS_ACCESS_KEY_ID": "lake-user", "AWS_SECRET_ACCESS_KEY": "lake-password", "AWS_REGION": "us-east-1"}
STORE = {"endpoint": "http://minio:9000", "allow_http": "true", "region": "us-east-1"}
TEMPORARY = "/tmp"  # noqa: S108 - in a container
HARDENED = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
WEBHOOK = {
    "MINIO_ROOT_USER": KEYS["AWS_ACCESS_KEY_ID"],
    "MINIO_ROOT_PASSWORD": KEYS["AWS_SECRET_ACCESS_KEY"],
    "MINIO_NOTIFY_WEBHOOK_ENABLE_LAKEWRIGHT": "on",
    "MINIO_NOTIFY_WEBHOOK_ENDPOINT_LAKEWRIGHT": f"http://{RELEASE}-decider.{NAMESPACE}.svc:7420/v1/events/minio",
    "MINIO_NOTIFY_WEBHOOK_AUTH_TOKEN_LAKEWRIGHT": f"Bearer {TOKEN}",
    "MINIO_NOTIFY_WEBHOOK_QUEUE_DIR_LAKEWRIGHT": "/data/events",
}

NOTIFY = """
import boto3
rules = {"Key": {"FilterRules": [{"Name": "suffix", "Value": ".json"}]}}
target = {"QueueArn": "arn:minio:sqs::LAKEWRIGHT:webhook", "Events": ["s3:ObjectCreated:*"], "Filter": rules}
boto3.client("s3", endpoint_url="http://minio:9000").put_bucket_notification_configuration(
    Bucket="lake", NotificationConfiguration={"QueueConfigurations": [target]})
"""
WRITE = """
import pyarrow, deltalake, random
for n in range(COMMITS):
    ids = range(n * ROWS, n * ROWS + ROWS)
    rows = pyarrow.table({"id": ids, "value": [random.Random(i).random() for i in ids]})
    deltalake.write_deltalake("s3://BUCKET/tables/TABLE", rows, mode="append")
"""
READ = """
import json, deltalake
table = deltalake.DeltaTable("s3://BUCKET/tables/TABLE")
ids = sorted(table.to_pyarrow_table()["id"].to_pylist())
print(json.dumps({"version": table.version(), "files": len(table.file_uris()), "exact": ids == list(range(len(ids))),
  "rows": len(ids)}))
"""
CALL = """
import json, urllib.request
headers = {"Authorization": "Bearer TOKEN", "Content-Type": "application/json"}
request = urllib.request.Request("http://RELEASE-decider:7420PATH", headers=headers, data=BODY)
print(urllib.request.urlopen(request, timeout=20).read().decode())
"""


def restricted_pod(user: int, **container: Any) -> dict[str, Any]:
    """Return the specification of a pod that a restricted namespace admits."""
    return {
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 1,
        "nodeSelector": {HOST: FIRST},
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": user,
            "fsGroup": user,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": "main",
                "imagePullPolicy": "Never",
                "securityContext": HARDENED,
                "volumeMounts": [{"name": "data", "mountPath": "/data"}, {"name": "tmp", "mountPath": TEMPORARY}],
                **container,
            }
        ],
        "volumes": [{"name": "data", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}],
    }


def manifest(kind: str, name: str, version: str = "v1", **fields: Any) -> dict[str, Any]:
    """Return an object; `metadata` is added to its name."""
    metadata = {"name": name, **fields.pop("metadata", {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


def prepare(cluster: Cluster) -> None:
    """Make the restricted namespace, a volume for Redis, the secrets, MinIO and the pod that writes."""
    level = {"pod-security.kubernetes.io/enforce": "restricted"}
    volume = cluster.folder / "redis"
    volume.mkdir()
    on_node = {"key": HOST, "operator": "In", "values": [FIRST]}
    cluster.apply(
        manifest("Namespace", NAMESPACE, metadata={"labels": level}),
        manifest(
            "StorageClass",
            "local",
            "storage.k8s.io/v1",
            metadata={"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
            provisioner="kubernetes.io/no-provisioner",
            volumeBindingMode="WaitForFirstConsumer",
        ),
        manifest(
            "PersistentVolume",
            "redis",
            spec={
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "local",
                "local": {"path": str(volume)},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [on_node]}]}},
            },
        ),
        manifest("Secret", "lakewright-token", stringData={"token": TOKEN}),
        manifest("Secret", "store", stringData=KEYS),
        manifest("Service", "minio", spec={"selector": {"app": "minio"}, "ports": [{"port": 9000}]}),
        manifest(
            "Pod",
            "minio",
            metadata={"labels": {"app": "minio"}},
            spec=restricted_pod(
                10002,
                image=f"{MINIO_IMAGE}:{TAG}",
                # A folder below the data is a bucket; MinIO posts events of the first one only.
                command=["sh", "-c", "mkdir -p /data/lake /data/quiet && exec minio server /data --address :9000"],
                env=[{"name": name, "value": value} for name, value in WEBHOOK.items()],
                readinessProbe={"httpGet": {"path": "/minio/health/ready", "port": 9000}, "periodSeconds": 2},
            ),
        ),
        manifest(
            "Pod",
            "writer",
            metadata={"labels": {"app": "writer"}},
            spec=restricted_pod(
                10001,
                image=f"{DECIDER}:{TAG}",
                command=["sleep", "infinity"],
                env=[
                    *({"name": name, "value": value} for name, value in KEYS.items()),
                    {"name": "AWS_ENDPOINT_URL", "value": STORE["endpoint"]},
                    {"name": "AWS_ALLOW_HTTP", "value": "true"},
                ],
            ),
        ),
    )
    cluster.wait_for(
        "MinIO and the writer run", "wait", "--for=condition=Ready", "--timeout=5s", "pod/minio", "pod/writer"
    )


class Lake:
    """Tables on MinIO, written and read by the pod, and the decider as that pod sees it."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._address = ""

    def notify(self) -> None:
        """Have MinIO post each new object of a log to the decider."""
        self.run(NOTIFY)

    def write(self, table: str, *, commits: int = 12, rows: int = 100) -> None:
        """Append to a table in several commits."""
        self.run(WRITE, COMMITS=commits, ROWS=rows, BUCKET="lake", TABLE=table)

    def read(self, table: str, *, bucket: str = "lake") -> dict[str, Any]:
        """Return the version, the number of files and of rows, and whether each row is there exactly once."""
        return dict(json.loads(self.run(READ, BUCKET=bucket, TABLE=table)))

    def call(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """Call the decider through its service, with a POST if there is a body."""
        data = None if body is None else json.dumps(body).encode()
        return json.loads(self.run(CALL, RELEASE=RELEASE, TOKEN=TOKEN, PATH=path, BODY=repr(data)))

    def answers(self, path: str) -> Any:
        """Return the decider's response, or None without one."""
        try:
            return self.call(path)
        except AssertionError:
            return None

    def call_from_node(self, path: str) -> Any:
        """Call the decider from the node, which is faster than from a new process in a pod."""
        service = ("get", "service", f"{RELEASE}-decider", "--output=jsonpath={.spec.clusterIP}")
        self._address = self._address or self._cluster.kubectl(*service)
        url = f"http://{self._address}:7420{path}"
        return json.loads(self._cluster.machine.run("curl", "-sf", "-H", f"Authorization: Bearer {TOKEN}", url))

    def tables(self) -> dict[str, str]:
        """Return the names of the registered tables, by their ids."""
        return {one["id"]: one["name"] for one in self.call("/v1/tables")["tables"]}

    def jobs(self) -> dict[str, int]:
        """Return the number of jobs by state."""
        return dict(self.call_from_node("/v1/status")["queue"]["depth"])

    def run(self, program: str, *, pod: str = "writer", seconds: float = COMMAND_S, **words: object) -> str:
        """Run a program of Python in a pod, with `words` replaced in its text, and return its output."""
        for word, value in words.items():
            program = program.replace(word, str(value))
        # Threads of pyarrow's may abort the interpreter when it ends as usual.
        program += "\nimport os, sys\nsys.stdout.flush()\nos._exit(0)\n"
        return self._cluster.kubectl("exec", "--stdin", pod, "--", "python", "-", text=program, seconds=seconds)
