"""The deployment files say what the services read: variables, ports, users and files, checked without a cluster.

What a real engine or cluster would say of them is in docs/deploy.md, with what was not tried.
"""

import json
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from actor.jvm import jars
from actor.jvm.java import JavaHome, JavaSource
from actor.jvm.own_jar import JAR
from decider.api.routes.groups import QueueBacklog
from decider.declared.tables_file import TablesFileReader
from decider.events.resolver import AllowedRoots
from decider.state.effective_policy import PolicyDefaults
from services import bootstrap
from services.actor import settings as actor_variables
from services.actor.settings import actor_settings
from services.decider.__main__ import STOP_S
from services.decider.build import build_services
from services.decider.settings import Address, decider_settings
from services.settings import format_options, log_format
from tests.e2e.test_images import IMAGES, compose, dockerfile
from tests.support.go_programs import HELM
from tests.support.time_limits import scaled

ROOT = Path(__file__).resolve().parents[2]
SWITCHES = (
    "networkPolicy.enabled=true,actor.autoscaling.enabled=true,decider.autoscaling.enabled=true,actor.allowS3=true,"
    "actor.volumeClaim=lake,roots={s3://lake,s3://more},buckets.b=s3://lake,policy.fan-in=4"
)


def known_variables() -> set[str]:
    """Return every variable that the services read."""
    sources = [*(ROOT / "services").rglob("*.py")]
    return {name for file in sources for name in re.findall(r'"(LAKEWRIGHT_[A-Z0-9_]+)"', file.read_text("utf-8"))}


class Recorder(Mapping[str, str]):
    """An environment without variables, which records the names that were asked for."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.names.add(name)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


TRACES = {"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"}
OF_THE_IMAGE = {"LAKEWRIGHT_DATA_DIR", "LAKEWRIGHT_IVY_DIR", "LAKEWRIGHT_TOKENS_FILE", "LAKEWRIGHT_ACTOR_NAME"}
"""Folders of the image, a file that nothing mounts (there is LAKEWRIGHT_TOKENS), and the container's own name."""
OF_THE_STANDALONE = {"LAKEWRIGHT_READY_FILE", "LAKEWRIGHT_SUPERVISED"}


def settings_read_by(service: str) -> set[str]:
    """Return the variables with which an operator sets up a decider or an actor in a container."""
    recorder = Recorder()
    readers: dict[str, Callable[[Mapping[str, str]], object]] = {"decider": decider_settings}
    readers.get(service, actor_settings)(recorder)
    log_format(recorder)
    return (recorder.names | TRACES) - OF_THE_IMAGE - OF_THE_STANDALONE


CATALOGS = '{"prod": {"uri": "https://catalog.example.com", "credential": "id:secret"}}'


def rendered(*arguments: str) -> list[dict[str, Any]]:
    """Render the chart."""
    command = [str(HELM.binary()), "template", "x", str(ROOT / "helm"), "--kube-version", "1.30.0", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=scaled(60), check=False)
    assert done.returncode == 0, done.stderr
    return [one for one in yaml.safe_load_all(done.stdout) if one]


def refusal(*arguments: str) -> str:
    """Return why Helm does not render the chart."""
    command = [str(HELM.binary()), "template", "x", str(ROOT / "helm"), "--kube-version", "1.30.0", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=scaled(60), check=False)
    assert done.returncode != 0
    return done.stderr


def container_of(service: str, *arguments: str) -> dict[str, Any]:
    """Return the decider's or the actor's container of the rendered chart."""
    (found,) = (
        one["spec"]["template"]["spec"]["containers"][0]
        for one in rendered(*arguments)
        if one["kind"] == "Deployment" and one["metadata"]["name"] == f"x-{service}"
    )
    return dict(found)


def environment_of(container: dict[str, Any]) -> dict[str, str]:
    """Return a container's environment, with a stand-in for what comes from a secret or a field."""
    stand_in = "a-token-of-thirty-two-characters"
    return {entry["name"]: entry.get("value", stand_in) for entry in container["env"]}


def test_compose_gives_settings_that_the_services_accept() -> None:
    services = compose()["services"]
    decider = decider_settings(services["decider"]["environment"])
    assert decider.address == Address("0.0.0.0", 7420)  # noqa: S104 - inside a container
    assert decider.access.token
    build_services(decider)
    assert not actor_settings(services["actor"]["environment"]).allow_s3
    for name in IMAGES:
        ours = {key for key in services[name]["environment"] if key.startswith("LAKEWRIGHT_")}
        assert ours <= known_variables()


@pytest.mark.parametrize("service", IMAGES)
def test_compose_passes_every_setting_to_the_service_that_reads_it_and_to_no_other(service: str) -> None:
    listed = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"][service]["environment"]
    ours = {name for name in listed if name.startswith(("LAKEWRIGHT_", "OTEL_"))}
    assert "LAKEWRIGHT_QUEUE" in ours
    assert ours == settings_read_by(service)


@pytest.mark.parametrize("service", ["decider", "actor"])
def test_the_chart_reaches_every_setting_by_one_value_and_sets_none_twice(service: str) -> None:
    free = sorted(settings_read_by(service) - environment_of(container_of(service)).keys())
    assert len(free) > 10
    for place in ("environment", f"{service}.environment"):
        stated = environment_of(container_of(service, "--set", ",".join(f"{place}.{name}=stated" for name in free)))
        assert all(stated[name] == "stated" for name in free)
        assert "sets LAKEWRIGHT_REDIS_URL already" in refusal("--set", f"{place}.LAKEWRIGHT_REDIS_URL=redis://other")
    own = container_of(service, "--set", f"environment.A=both,{service}.environment.A=own,environment.B=both")["env"]
    assert [(one["name"], one["value"]) for one in own if one["name"] in "AB"] == [("A", "own"), ("B", "both")]


def test_the_chart_writes_large_numbers_as_the_settings_read_them(tmp_path: Path) -> None:
    # Helm reads numbers of a file as floating point, and would write 1.34217728e+08.
    (tmp_path / "values.yaml").write_text(
        "policy: {target-file-size: 134217728, full-file-threshold: 0.8}\n"
        "decider: {environment: {LAKEWRIGHT_MAX_BODY_BYTES: 2097152}}\n"
        "sqsQueues: [https://sqs.eu-west-1.amazonaws.com/1/a, https://sqs.eu-west-1.amazonaws.com/1/b]\n"
    )
    found = decider_settings(environment_of(container_of("decider", "--values", str(tmp_path / "values.yaml"))))
    assert found.tracking.policy.target_bytes == 134_217_728
    assert found.limits.max_body_bytes == 2_097_152
    assert found.access.sqs_queues == tuple(f"https://sqs.eu-west-1.amazonaws.com/1/{name}" for name in "ab")


def test_compose_passes_catalogs_and_folders_of_iceberg_to_decider_and_actor() -> None:
    services = compose(LAKEWRIGHT_CATALOGS=CATALOGS, LAKEWRIGHT_ICEBERG_FOLDERS="true")["services"]
    decider = decider_settings(services["decider"]["environment"]).locations
    for formats in (decider.formats, actor_settings(services["actor"]["environment"]).formats):
        assert formats.catalogs == json.loads(CATALOGS)
        assert formats.iceberg_folders
    unset = compose()["services"]
    assert not decider_settings(unset["decider"]["environment"]).locations.formats.has_iceberg
    assert not actor_settings(unset["actor"]["environment"]).formats.has_iceberg


def test_compose_runs_nothing_as_root_and_keeps_what_redis_acknowledged() -> None:
    for name, service in compose()["services"].items():
        assert service["read_only"] == "True", name
        assert service["cap_drop"] == ["ALL"], name
        assert service["healthcheck"]["test"], name
        assert "user" in service or "USER 10001" in dockerfile(name), name
    command = " ".join(compose()["services"]["redis"]["command"])
    assert "--appendonly yes" in command
    assert "--maxmemory-policy noeviction" in command


@pytest.mark.parametrize("name", IMAGES)
def test_an_image_is_built_from_files_that_exist_and_sets_variables_that_are_read(name: str) -> None:
    text = dockerfile(name)
    assert compose()["services"][name]["build"]["dockerfile"] == f"services/{IMAGES[name][0]}"
    for line in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE):
        for source in line.split():
            assert (ROOT / source).exists(), source
            assert f"!{source}" in (ROOT / ".dockerignore").read_text("utf-8").splitlines(), source
    assert set(re.findall(r"(LAKEWRIGHT_[A-Z0-9_]+)=", text)) <= known_variables()
    assert f'ENTRYPOINT ["python", "-m", "{IMAGES[name][1]}"]' in text


@pytest.mark.parametrize(
    "setting",
    [{"LAKEWRIGHT_CATALOGS": CATALOGS}, {"LAKEWRIGHT_ICEBERG_FOLDERS": "true"}, {"LAKEWRIGHT_ALLOW_S3": "true"}],
)
def test_the_actor_image_has_the_jars_of_each_setting(setting: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    # User 10001 cannot write to /opt/ivy, so an actor whose jars are not in the image does not start.
    text = dockerfile("actor").replace("\\\n", " ")
    (call,) = re.findall(r"^RUN ((?:\w+=\S+ +)+)\S+ -m services\.bootstrap", text, re.MULTILINE)
    built = dict(pair.split("=", 1) for pair in call.split())
    needed: list[str] = []

    def look_up(_: Path, wanted: jars.JarSet) -> jars.Jars:
        needed.append(wanted.purpose)
        return jars.Jars(Path(), (), (), ())

    monkeypatch.setattr(bootstrap, "find_java", lambda _: JavaHome(Path(), "17", JavaSource.PATH))
    monkeypatch.setattr(jars, "look_up", look_up)
    bootstrap.prepare(built, lambda _: None)
    there = {*needed}
    needed.clear()
    bootstrap.prepare(setting, lambda _: None)
    assert len(needed) > 1
    assert there >= {*needed}


def test_the_actor_image_compiles_its_java_classes_and_keeps_no_compiler() -> None:
    # User 10001 cannot write to the package, so an actor whose jar is not in the image does not start.
    text = dockerfile("actor")
    assert (
        text.index("-m services.bootstrap") < text.index("-m services.java_jar") < text.index("/opt/ivy/jars/*_ecj-*")
    )
    assert "_ecj-" in next(iter(jars.COMPILER.digests()))
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert str(JAR.relative_to(ROOT)) in ignored, "it may be that of other sources"


def test_the_ready_file_is_where_the_probes_look() -> None:
    assert str(actor_settings({"LAKEWRIGHT_DATA_DIR": "/data"}).ready_file) == "/data/actor.ready"
    container = container_of("actor")
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert "/data/actor.ready" in str(container[probe]["exec"]["command"])
    assert "/data/actor.ready" in compose()["services"]["actor"]["healthcheck"]["test"]


@pytest.mark.parametrize("switches", ["", SWITCHES])
def test_the_chart_gives_settings_that_the_services_accept(switches: str) -> None:
    found = rendered(*(["--set", switches] if switches else []))
    containers = {
        one["metadata"]["name"]: one["spec"]["template"]["spec"]["containers"][0]
        for one in found
        if one["kind"] == "Deployment"
    }
    decider = decider_settings(environment_of(containers["x-decider"]))
    build_services(decider)
    assert decider.locations.roots == (("s3://lake", "s3://more") if switches else ())
    stated = environment_of(containers["x-actor"])
    assert actor_settings(stated).allow_s3 is bool(switches)
    assert stated.keys() <= known_variables()
    assert actor_variables.SLOTS in stated
    for container in containers.values():
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["readinessProbe"]


def tables_of(*arguments: str) -> tuple[Any, ...]:
    """Return the tables file's path in the decider, its volume, and what it is made of."""
    found = rendered(*arguments)
    (pod,) = (
        one["spec"]["template"]["spec"]
        for one in found
        if one["metadata"]["name"] == "x-decider" and "spec" in one and "template" in one["spec"]
    )
    path = environment_of(pod["containers"][0]).get("LAKEWRIGHT_TABLES_FILE")
    volumes = [one["configMap"]["name"] for one in pod["volumes"] if "configMap" in one]
    mounts = [one["mountPath"] for one in pod["containers"][0]["volumeMounts"] if one["name"] == "tables"]
    return path, volumes, mounts, [one["data"] for one in found if one["kind"] == "ConfigMap"]


def test_the_chart_mounts_declared_tables_as_deciders_read_them(tmp_path: Path) -> None:
    assert tables_of() == (None, [], [], [])
    place = ("/etc/lakewright/tables.yaml", ["/etc/lakewright"])
    path, volumes, mounts, data = tables_of("--set", "tablesConfigMap=own,tables[0].location=s3://lake/a")
    assert (path, volumes, mounts, data) == (place[0], ["own"], place[1], [])
    (tmp_path / "values.yaml").write_text(
        "tables:\n- {location: s3://lake/sales/orders, name: sales.orders, paused: true,\n"
        "   properties: {lakewright.target-file-size: 134217728, lakewright.enabled: true}}\n- {location: s3://lake/b}\n"
    )
    path, volumes, mounts, data = tables_of("--values", str(tmp_path / "values.yaml"))
    assert (path, volumes, mounts) == (place[0], ["x-tables"], place[1])
    reader = TablesFileReader(AllowedRoots(roots=("s3://lake",)), PolicyDefaults)
    first, second = reader.read(data[0]["tables.yaml"].encode(), "tables.yaml").tables.values()
    assert (first.name, first.paused, second.name) == ("sales.orders", True, "b")
    assert first.properties == {"lakewright.target-file-size": "134217728", "lakewright.enabled": "true"}
    assert "'nam'" in refusal("--set", "tables[0].nam=x")


def test_the_chart_names_secrets_and_holds_none() -> None:
    found = rendered("--set", "storeOptionsSecret=o,credentialsSecret=c,redis.existingSecret=r")
    assert not [one for one in found if one["kind"] in ("Secret", "StatefulSet")]
    text = json.dumps(found)
    assert '"secretKeyRef": {"name": "lakewright-token", "key": "token"}' in text
    assert '"secretKeyRef": {"name": "r", "key": "url"}' in text


def test_the_chart_passes_catalogs_to_decider_and_actor_with_credentials_from_a_secret() -> None:
    plain = {"prod": {"uri": "https://catalog.example.com", "warehouse": "lake"}}
    for arguments, stated in (
        ((), (None, None)),
        (("--set-json", f"catalogs={json.dumps(plain)}"), (json.dumps(plain, separators=(",", ":")), None)),
        (("--set", "catalogsSecret=k,catalogs.prod.uri=x,icebergFolders=true"), ("from k", "true")),
    ):
        deployments = [one for one in rendered(*arguments) if one["kind"] == "Deployment"]
        assert len(deployments) == 2
        for one in deployments:
            found = {entry["name"]: entry for entry in one["spec"]["template"]["spec"]["containers"][0]["env"]}
            catalogs = found.get("LAKEWRIGHT_CATALOGS", {})
            secret = catalogs.get("valueFrom", {}).get("secretKeyRef")
            assert secret in (None, {"name": "k", "key": "catalogs"})
            assert (f"from {secret['name']}" if secret else catalogs.get("value")) == stated[0]
            assert found.get("LAKEWRIGHT_ICEBERG_FOLDERS", {}).get("value") == stated[1]
            values = {name: entry["value"] for name, entry in found.items() if "value" in entry}
            assert format_options(values).has_iceberg is (stated != (None, None))


def test_each_value_of_the_chart_is_used_and_each_used_one_is_there() -> None:
    def paths(value: Any, path: str) -> set[str]:
        if not isinstance(value, dict) or not value:
            return {path}
        return {leaf for key, inner in value.items() for leaf in paths(inner, f"{path}.{key}")}

    values = yaml.safe_load((ROOT / "helm" / "values.yaml").read_text("utf-8"))
    templates = "".join(file.read_text("utf-8") for file in (ROOT / "helm" / "templates").rglob("*.*"))
    used = set(re.findall(r"\.Values((?:\.\w+)+)", templates))
    there = paths(values, "")
    assert not {one for one in used if not any(leaf == one or leaf.startswith(one + ".") for leaf in there)}
    assert not {leaf for leaf in there if not any(leaf == one or leaf.startswith(one + ".") for one in used)}


def test_each_value_of_the_chart_is_in_its_schema_and_others_are_refused() -> None:
    def compare(value: Any, schema: Any, path: str) -> None:
        if isinstance(value, dict) and "properties" in schema:
            assert schema["additionalProperties"] is False, path
            assert value.keys() == schema["properties"].keys() - {"global"}, path
            for key, inner in value.items():
                compare(inner, schema["properties"][key], f"{path}.{key}")

    values = yaml.safe_load((ROOT / "helm" / "values.yaml").read_text("utf-8"))
    compare(values, json.loads((ROOT / "helm" / "values.schema.json").read_text("utf-8")), "")


@pytest.mark.parametrize("values", sorted((ROOT / "helm" / "ci").iterdir()), ids=lambda file: str(file.name))
def test_the_chart_passes_lint_and_renders_with_the_values_of_ci(values: Path) -> None:
    command = [str(HELM.binary()), "lint", "--strict", str(ROOT / "helm"), "--values", str(values)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=scaled(60), check=False)
    assert done.returncode == 0, done.stdout
    assert len({(one["kind"], one["metadata"]["name"]) for one in rendered("--values", str(values))}) > 3


def test_pods_have_the_account_the_annotations_and_the_spread_of_the_values() -> None:
    spread = "topologySpreadConstraints[0].maxSkew=1"
    names = "fullnameOverride=lake,nameOverride=other,podAnnotations.team=data"
    found = rendered("--set", f"{names},{spread},serviceAccount.create=false,serviceAccount.name=own")
    assert not [one for one in found if one["kind"] == "ServiceAccount"]
    deployments = {one["metadata"]["name"]: one["spec"] for one in found if one["kind"] == "Deployment"}
    assert deployments.keys() == {"lake-decider", "lake-actor"}
    for spec in deployments.values():
        pod = spec["template"]
        assert pod["metadata"]["annotations"]["team"] == "data"
        assert pod["metadata"]["labels"]["app.kubernetes.io/name"] == "other"
        assert pod["spec"]["serviceAccountName"] == "own"
        (constraint,) = pod["spec"]["topologySpreadConstraints"]
        assert constraint == {"maxSkew": 1, "labelSelector": {"matchLabels": spec["selector"]["matchLabels"]}}


@pytest.mark.parametrize("mistake", ["actor.slot=2", "actor.slots=0", "roots=s3://lake", "image.pullPolicy=Sometimes"])
def test_lint_names_a_value_that_the_chart_does_not_know(mistake: str) -> None:
    command = [str(HELM.binary()), "lint", str(ROOT / "helm"), "--set"]
    good = subprocess.run([*command, SWITCHES], capture_output=True, text=True, timeout=scaled(60), check=False)
    assert good.returncode == 0, good.stdout
    bad = subprocess.run([*command, mistake], capture_output=True, text=True, timeout=scaled(60), check=False)
    assert bad.returncode == 1
    assert mistake.partition("=")[0].rpartition(".")[2] in bad.stdout + bad.stderr


def test_actors_are_scaled_by_the_backlog_that_the_decider_serves() -> None:
    found = {one["kind"]: one for one in rendered("--set", "actor.autoscaling.enabled=true,actor.slots=3")}
    scaled_object = found["ScaledObject"]["spec"]
    (trigger,) = scaled_object["triggers"]
    assert scaled_object["scaleTargetRef"] == {"name": "x-actor"}
    assert (scaled_object["minReplicaCount"], scaled_object["maxReplicaCount"]) == (0, 10)
    assert trigger["type"] == "metrics-api"
    assert trigger["metadata"] == {
        "url": "http://x-decider.default.svc:7420/v1/backlog",
        "valueLocation": "work_s",
        "targetValue": "900",
        "authMode": "bearer",
    }
    assert trigger["metadata"]["valueLocation"] in QueueBacklog.model_fields
    secret = found["TriggerAuthentication"]["spec"]["secretTargetRef"]
    assert secret == [{"parameter": "token", "name": "lakewright-token", "key": "token"}]
    deployments = [one for one in rendered("--set", "actor.autoscaling.enabled=true") if one["kind"] == "Deployment"]
    assert {one["metadata"]["name"]: "replicas" in one["spec"] for one in deployments} == {
        "x-actor": False,
        "x-decider": True,
    }


@pytest.mark.parametrize("delay_s", [0, 5, 30])
def test_a_decider_that_is_stopped_takes_calls_for_a_while_and_then_has_time_to_end(delay_s: int) -> None:
    for one in rendered("--set", f"decider.stopDelaySeconds={delay_s}"):
        if one["kind"] == "Deployment" and one["metadata"]["name"] == "x-decider":
            pod = one["spec"]["template"]["spec"]
    hooks = pod["containers"][0].get("lifecycle", {})
    assert hooks == ({"preStop": {"exec": {"command": ["sleep", str(delay_s)]}}} if delay_s else {})
    assert pod["terminationGracePeriodSeconds"] >= delay_s + 2 * STOP_S


def test_a_pod_that_is_not_ready_does_not_keep_a_node_from_being_drained() -> None:
    budgets = [one["spec"] for one in rendered() if one["kind"] == "PodDisruptionBudget"]
    assert [(one["maxUnavailable"], one["unhealthyPodEvictionPolicy"]) for one in budgets] == [(1, "AlwaysAllow")] * 2
