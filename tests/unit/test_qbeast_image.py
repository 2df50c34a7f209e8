"""The image of the actor of Qbeast tables: what it installs, which jar it mounts, and when compose starts it."""

import re

from services.actor.settings import QBEAST_JAR
from tests.support.deployment_files import compose, dockerfile


def test_the_actor_of_qbeast_tables_runs_only_with_its_profile_and_reads_the_jar_that_is_mounted() -> None:
    services = compose(LAKEWRIGHT_QBEAST_JAR="/jars/library.jar")["services"]
    assert [name for name, service in services.items() if "profiles" in service] == ["qbeast-actor"]
    assert services["qbeast-actor"]["profiles"] == ["qbeast"]
    assert services["qbeast-actor"]["environment"] == services["actor"]["environment"]
    (jar,) = [one for one in services["qbeast-actor"]["volumes"] if isinstance(one, dict)]
    assert (jar["source"], jar["read_only"]) == ("/jars/library.jar", "True")
    assert jar["bind"] == {"create_host_path": "False"}
    assert f"ENV {QBEAST_JAR}={jar['target']}\n" in dockerfile("qbeast-actor")


def test_the_image_of_qbeast_tables_installs_its_own_lock_and_fetches_the_jars_of_its_spark() -> None:
    text = dockerfile("qbeast-actor").replace("\\\n", " ")
    (sync,) = re.findall(r"uv pip sync (.+?) &&", text)
    assert {"--require-hashes", "--require-build-hashes"} <= {*sync.split()}
    assert sync.split()[-1] == "services/actor/qbeast.lock"
    assert "--no-deps" in text, "the project's own requirements name another Spark"
    assert "LAKEWRIGHT_IVY_DIR=/opt/ivy" in text
    assert "-m services.actor.qbeast --fetch" in text
