"""Environment variables become settings here, once, under one name each; no other package reads the environment."""

from collections.abc import Mapping
from pathlib import Path

from actor.delta.java import JavaSearch

REDIS_URL = "LAKEWRIGHT_REDIS_URL"
HTTP_ADDRESS = "LAKEWRIGHT_HTTP_ADDRESS"
DATA_DIR = "LAKEWRIGHT_DATA_DIR"
JAVA = "LAKEWRIGHT_JAVA"
IVY_DIR = "LAKEWRIGHT_IVY_DIR"

DEFAULT_HTTP_ADDRESS = "127.0.0.1:7420"
DEFAULT_REDIS_URL = "redis://127.0.0.1:7421/0"
DEFAULT_DATA_DIR = ".lakewright"


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


def http_address(environ: Mapping[str, str]) -> str:
    """`host:port` of the decider's REST API."""
    return environ.get(HTTP_ADDRESS) or DEFAULT_HTTP_ADDRESS


def redis_url(environ: Mapping[str, str]) -> str:
    """URL of the Redis that holds queue, cells and cursors."""
    return environ.get(REDIS_URL) or DEFAULT_REDIS_URL


def java_search(environ: Mapping[str, str]) -> JavaSearch:
    """Where to look for Java; SSL_CERT_FILE is what the rest of the toolchain trusts, so the bundled Java does too."""
    bundle = environ.get("SSL_CERT_FILE")
    return JavaSearch(
        work_dir=cache_dir(environ),
        choice=environ.get(JAVA) or "auto",
        java_home=environ.get("JAVA_HOME", ""),
        path=environ.get("PATH", ""),
        ca_bundle=Path(bundle) if bundle else None,
    )
