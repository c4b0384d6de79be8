"""Sessions that do all their own set-up: ``python -m nox -s demo | quick | tests | lint | docs | bench``.

``quick`` answers a developer in three minutes.  ``tests`` runs everything on Python 3.11 with torch 2.13.0 and
transformers 4.52.4, ``tests_torch`` on the other versions too, ``tests_without_torch`` the parts that need no torch on
the other versions of Python.  A Python that is not installed is skipped; ``--error-on-missing-interpreters`` fails.
"""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

import nox

nox.options.default_venv_backend = "venv"
nox.options.reuse_venv = "yes"
nox.options.error_on_missing_interpreters = False
nox.options.sessions = ["lint", "tests", "tests_without_torch"]

PAPER = "constraints/torch-2.13.0.txt"
TODAY = "constraints/transformers-5.23.0.txt"
ECOSYSTEM = "constraints/ecosystem.txt"
# Each pair of torch and Python that the README and docs/tested.md say is supported.
MATRIX = [
    *((torch, "3.11") for torch in ("2.12.1", "2.13.0", "2.14.1", "2.15.0")),
    *(("2.15.0", python) for python in ("3.12", "3.13")),
]
# What a hook writes and reads must not depend on what the caller's shell exports.
CLEAN = {"PYTHONDONTWRITEBYTECODE": None, "PYTHONPATH": None, "HF_HUB_OFFLINE": "1"}
# What training loops of the tests are made with, where it is there.
TRAINERS = ("accelerate==1.15.0", "peft==0.21.2")
# A worker that is done takes over from the others; each may come to a gigabyte.
PYTEST = ("pytest", "-n", str(min(os.cpu_count() or 2, 8)), "--dist", "worksteal")


def with_torch(session: nox.Session, extras: str, constraints: str = PAPER) -> None:
    """Install the package with `extras`, torch and transformers as `constraints` pins them."""
    session.install("-c", constraints, "torch", "transformers", f".[{extras}]")
    session.env.update(CLEAN)


@nox.session(python="3.11")
def demo(session: nox.Session) -> None:
    """T5, compiled without and with the hook."""
    with_torch(session, "demo")
    session.run("graphmend", "demo", *session.posargs)


@nox.session(python="3.11")
def quick(session: nox.Session) -> None:
    """The tests that are not marked as slow, and a few random programs, in three minutes on two cores."""
    with_torch(session, "test")
    session.env["RANDOM_PROGRAMS"] = "40"
    session.run(*PYTEST, "-m", "not slow", *session.posargs)


@nox.session(python="3.11")
def tests(session: nox.Session) -> None:
    """The suite, on torch 2.13.0 and transformers 4.52.4."""
    with_torch(session, "test")
    session.install("-c", PAPER, *TRAINERS)
    # One case in four, on one backend, and every other model: `tests_torch` has all of them.
    session.run(*PYTEST, *(session.posargs or ["--each-on-one", "--sample", "4"]))


@nox.session
@nox.parametrize("torch, python", [nox.param(*pair, id=" on ".join(pair)) for pair in MATRIX])
def tests_torch(session: nox.Session, torch: str) -> None:
    """The whole suite, on each torch and Python that is supported; `matrix` shows what came of it."""
    with_torch(session, "test", f"constraints/torch-{torch}.txt")
    result = result_file(session, torch, str(session.python))
    result.unlink(missing_ok=True)
    whole = [] if session.posargs else [f"--junit-xml={result}"]
    session.run(*PYTEST, *whole, *session.posargs)


@nox.session(python=False, default=False)
def matrix(session: nox.Session) -> None:
    """The table of docs/tested.md: the last whole run of each session of `tests_torch`."""
    print("| torch | Python | passed | failed | skipped |\n|---|---|---|---|---|")
    for torch, python in MATRIX:
        counts = "not run | |"
        if (result := result_file(session, torch, python)).exists():
            suite = next(ElementTree.parse(result).iter("testsuite")).attrib
            failed, skipped = int(suite["failures"]) + int(suite["errors"]), int(suite["skipped"])
            counts = f"{int(suite['tests']) - failed - skipped} | {failed} | {skipped}"
        print(f"| {torch} | {python} | {counts} |")


def result_file(session: nox.Session, torch: str, python: str) -> Path:
    return session.cache_dir / f"tests-torch-{torch}-python-{python}.xml"


@nox.session(python="3.12")
def tests_tracer(session: nox.Session) -> None:
    """What touches the tracer, on the newest torch and another Python; and hook and rewriter, on that Python."""
    with_torch(session, "test", "constraints/torch-2.15.0.txt")
    parts = [f"tests/{part}" for part in ("compiled", "hook", "rewrite")]
    # One case in six, on the backend that traces with Dynamo and AOTAutograd; `tests_torch` has all of them.
    session.run(*PYTEST, *(session.posargs or ["--one-backend", "aot_eager", "--sample", "6", *parts]))


@nox.session(python="3.11")
def tests_today(session: nox.Session) -> None:
    """What holds on transformers 5.23.0 too."""
    with_torch(session, "test", TODAY)
    session.install("-c", TODAY, "scipy", *TRAINERS)  # eomt asks for scipy
    # How people train is torch's affair and that of the trainers, which are the same in `tests`.
    parts = ["tests/models", "--ignore=tests/models/test_loops.py"]
    session.run(*PYTEST, *(session.posargs or ["--each-on-one", "--sample", "4", *parts]))


@nox.session(python=["3.10", "3.12", "3.13"])
def tests_without_torch(session: nox.Session) -> None:
    """Hook, runner and rewriter on the other versions of Python."""
    session.install(".[test]")
    session.env.update(CLEAN)
    parts = [f"tests/{part}" for part in ("commands", "explain", "hook", "runner", "rewrite")]
    session.run(*PYTEST, *parts, *session.posargs)


@nox.session(python="3.11")
def lint(session: nox.Session) -> None:
    """Style, formatting and types."""
    session.install("ruff==0.17.*", "mypy==2.*", "bytecode>=0.17", "platformdirs>=4", "rich>=13", "pytest>=8")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("mypy")


@nox.session(python="3.11")
def package(session: nox.Session) -> None:
    """What would be published: an sdist and a wheel that an index takes, and that import where they are installed."""
    session.install("build", "twine")
    with TemporaryDirectory() as folder:
        session.run("python", "-m", "build", "--outdir", folder)
        files = sorted(map(str, Path(folder).iterdir()))
        session.run("twine", "check", "--strict", *files)
        session.install(next(file for file in files if file.endswith(".whl")))
        with session.chdir(folder):  # the checkout is no part of it
            session.run("graphmend", "rules", "GM102-R05")


@nox.session(python="3.11")
def docs(session: nox.Session) -> None:
    """The site of the docs, in build/site; a link that leads nowhere is an error."""
    session.install("-c", "constraints/docs.txt", ".[docs]")
    session.env["NO_MKDOCS_2_WARNING"] = "1"  # it is an advertisement
    session.run("mkdocs", "build", "--strict", *session.posargs)


@nox.session(python="3.11")
def bench(session: nox.Session) -> None:
    """Every number of docs/costs.md, as ratios measured in one run; ``-- --quick`` for a first look."""
    with_torch(session, "bench")
    session.run("python", "-m", "bench", *session.posargs)


@nox.session(python="3.11")
def bench_today(session: nox.Session) -> None:
    """Graph breaks on transformers 5.23.0."""
    with_torch(session, "bench", TODAY)
    session.install("scipy")
    session.run("python", "-m", "bench", "--only", "breaks", *session.posargs)


@nox.session(python="3.11")
def ecosystem(session: nox.Session) -> None:
    """Cases of other libraries, without the hook and with it, and the page of the docs about them; an hour."""
    session.install("-r", ECOSYSTEM, "scipy", ".[bench]")
    session.env.update(CLEAN)
    session.run("python", "-m", "bench.ecosystem", *session.posargs)
    session.run("python", "-m", "bench.ecosystem", "--page")
