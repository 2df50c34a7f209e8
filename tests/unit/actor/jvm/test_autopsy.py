"""Why a process died is read from how it ended and what it printed; secrets in that are hidden."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from actor.jvm import autopsy
from actor.jvm.autopsy import KEPT_CHARS, KEPT_LINES, Autopsy, JvmProcess, explain, redact, tail
from services.actor.__main__ import known_secrets
from services.actor.settings import actor_settings
from tests.support.waiting import until

OOM = "noise\nTerminating due to java.lang.OutOfMemoryError: Java heap space\n"


@pytest.mark.parametrize(
    ("code", "printed", "says", "was_asked"),
    [
        (3, OOM, "OutOfMemoryError: Java heap space", False),
        (52, "Uncaught java.lang.OutOfMemoryError: Metaspace", "OutOfMemoryError: Metaspace", False),
        (-9, "", "SIGKILL (9)", False),
        (137, "", "SIGKILL (9)", False),
        (-6, "# SIGSEGV (0xb) at pc=0x00007f, pid=7", "SIGSEGV (0xb) at pc", False),
        (-11, "", "SIGSEGV (11)", False),
        (-15, "", "SIGTERM (15)", True),
        (143, "", "SIGTERM (15)", True),
        (130, "", "SIGINT (2)", True),
        (1, "Error: Could not find class", "exit code 1", False),
        (0, "", "exit code 0", False),
        (None, "", "no longer answered", False),
    ],
)
def test_the_cause_names_memory_signal_or_exit_code(code: int | None, printed: str, says: str, was_asked: bool) -> None:
    death = explain(code, printed)
    assert says in death.cause
    assert death.was_requested is was_asked
    assert ("It printed nothing" in death.cause) == (not printed)


def test_an_exception_that_spark_survived_is_not_taken_for_the_cause_of_a_kill() -> None:
    assert "SIGKILL" in explain(-9, "task failed: SparkOutOfMemoryError: no memory").cause


def test_secrets_are_hidden_by_their_value_and_by_their_names() -> None:
    text = (
        "fs.s3a.secret.key=abc123 spark.password: hunter2 ok=1\n"
        "GET https://me:pass@host/x?X-Amz-Signature=deadbeef\nAuthorization: Bearer t0k3n\nvalue s3cr3t-value here"
    )
    hidden = redact(text, ["s3cr3t-value", "true"])
    for secret in ("abc123", "hunter2", "pass@", "deadbeef", "t0k3n", "s3cr3t-value"):
        assert secret not in hidden, secret
    assert "ok=1" in hidden
    assert redact("it is true", ["true"]) == "it is true", "a word is no secret"


def test_what_is_kept_of_the_output_is_its_end_and_bounded(tmp_path: Path) -> None:
    file = tmp_path / "jvm.log"
    assert tail(file) == ""
    file.write_text("".join(f"line {number} {'x' * 500}\n" for number in range(5_000)))
    kept = tail(file)
    assert len(kept) <= KEPT_CHARS
    assert len(kept.splitlines()) <= KEPT_LINES
    assert "line 4999 " in kept


def test_a_secret_at_the_cut_is_hidden_too(tmp_path: Path) -> None:
    file = tmp_path / "jvm.log"
    secret = "s3cr3t" * 10
    file.write_text(f"{'a' * 50_000}{secret}{'b' * (KEPT_CHARS - 20)}")
    assert "s3cr3t" not in tail(file, [secret])


def test_the_settings_of_an_actor_tell_its_secrets() -> None:
    environment = {
        "LAKEWRIGHT_REDIS_URL": "redis://:p%2Fw-of-redis@host:6379/0",
        "LAKEWRIGHT_TOKENS": "hook:first-token,admin:second-token",
        "LAKEWRIGHT_TOKENS_FILE": "/run/tokens",
        "AWS_SECRET_ACCESS_KEY": "aws-secret-1",
        "LAKEWRIGHT_STORE_OPTIONS": '{"region": "eu-west-1", "secret_access_key": "in-store", "access_key_id": "AK"}',
        "PATH": "/usr/bin",
    }
    found = known_secrets(actor_settings(environment), environment)
    assert {"p/w-of-redis", "first-token", "second-token", "aws-secret-1", "in-store"} <= set(found)
    assert not {"eu-west-1", "AK", "/usr/bin", "/run/tokens"} & set(found)


def start(code: str, printed: Path) -> subprocess.Popen[bytes]:
    with printed.open("wb") as output:
        return subprocess.Popen([sys.executable, "-c", code], stdout=output, stderr=output)


def test_a_process_that_only_seems_dead_is_ended_before_anything_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever takes the job next must not meet a commit of this one."""
    monkeypatch.setattr(autopsy, "GRACE_S", 0.05)
    process = start("import signal; print('alive', flush=True); signal.pause()", tmp_path / "log")
    until("it has started", lambda: (tmp_path / "log").read_text())
    seen = Autopsy(JvmProcess(process, tmp_path / "log"))
    death = seen.perform()
    assert death is not None
    assert process.poll() == -signal.SIGKILL
    assert "no longer answered" in death.cause
    assert "alive" in death.cause
    assert seen.perform() is death


def test_a_process_that_cannot_be_ended_has_no_cause(tmp_path: Path) -> None:
    class Stuck:
        pid = 1

        def wait(self, timeout: float) -> int:
            raise subprocess.TimeoutExpired("java", timeout)

        def kill(self) -> None:
            """As on a process that hangs in the kernel."""

    assert Autopsy(JvmProcess(Stuck(), tmp_path / "log")).perform() is None  # type: ignore[arg-type]
