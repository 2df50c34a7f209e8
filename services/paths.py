"""Where things lie on this machine: data, downloads, and the Java that Spark runs on."""

from collections.abc import Mapping
from pathlib import Path

from actor.jvm.java import JavaSearch
from services.settings import DATA_DIR, DEFAULT_DATA_DIR, IVY_DIR, JAVA, READY_FILE


def cache_dir(environ: Mapping[str, str]) -> Path:
    """Where downloads lie: inside a checkout `.cache`, for an installed package the user's cache directory."""
    root = Path(__file__).resolve().parent.parent
    if (root / "pyproject.toml").is_file():
        return root / ".cache"
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "lakewright"


def ivy_dir(environ: Mapping[str, str]) -> Path:
    """Where Spark's extra jars lie."""
    given = environ.get(IVY_DIR)
    return Path(given) if given else cache_dir(environ) / "ivy"


def data_dir(environ: Mapping[str, str]) -> Path:
    """Where the standalone keeps its Redis data, its logs and its working files."""
    return Path(environ.get(DATA_DIR) or DEFAULT_DATA_DIR)


def ready_file(environ: Mapping[str, str]) -> Path:
    """Where an actor keeps a file for as long as it takes jobs."""
    given = environ.get(READY_FILE)
    return Path(given) if given else data_dir(environ) / "actor.ready"


def java_search(environ: Mapping[str, str]) -> JavaSearch:
    """Where to search for Java; the bundled Java trusts SSL_CERT_FILE, as the rest of the toolchain does."""
    bundle = environ.get("SSL_CERT_FILE")
    return JavaSearch(
        work_dir=cache_dir(environ),
        choice=environ.get(JAVA) or "auto",
        java_home=environ.get("JAVA_HOME", ""),
        path=environ.get("PATH", ""),
        ca_bundle=Path(bundle) if bundle else None,
    )
