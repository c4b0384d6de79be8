"""Sessions that do all their own set-up: ``python -m nox -s demo | tests | lint | bench``.

``tests`` runs everything on Python 3.11 with torch and transformers 4.52.4.  ``tests_without_torch`` runs the parts
that need no torch on the other versions of Python; one that is not installed is skipped.
"""

from __future__ import annotations

import nox

nox.options.default_venv_backend = "venv"
nox.options.reuse_venv = "yes"
nox.options.error_on_missing_interpreters = False
nox.options.sessions = ["lint", "tests", "tests_without_torch"]

PAPER = "constraints/transformers-4.52.4.txt"
TODAY = "constraints/transformers-5.23.0.txt"
# What a hook writes and reads must not depend on what the caller's shell exports.
CLEAN = {"PYTHONDONTWRITEBYTECODE": None, "PYTHONPATH": None, "HF_HUB_OFFLINE": "1"}


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
def tests(session: nox.Session) -> None:
    """The whole suite, on transformers 4.52.4."""
    with_torch(session, "test")
    # A worker that is done takes over from the other: the last tests, whole models, are long.
    session.run("pytest", "-n", "2", "--dist", "worksteal", *session.posargs)


@nox.session(python="3.11")
def tests_today(session: nox.Session) -> None:
    """What holds on transformers 5.23.0 too."""
    with_torch(session, "test", TODAY)
    session.install("scipy")  # eomt asks for it
    session.run("pytest", "-n", "2", *(session.posargs or ["tests/models"]))


@nox.session(python=["3.10", "3.12", "3.13"])
def tests_without_torch(session: nox.Session) -> None:
    """Hook, runner and rewriter on the other versions of Python."""
    session.install(".[test]")
    session.env.update(CLEAN)
    session.run(
        "pytest",
        "-n",
        "2",
        "tests/commands",
        "tests/explain",
        "tests/hook",
        "tests/runner",
        "tests/rewrite",
        *session.posargs,
    )


@nox.session(python="3.11")
def lint(session: nox.Session) -> None:
    """Style, formatting and types."""
    session.install("ruff==0.17.*", "mypy==2.*", "bytecode>=0.17", "platformdirs>=4", "rich>=13", "pytest>=8")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("mypy")


@nox.session(python="3.11")
def bench(session: nox.Session) -> None:
    """Every number of the README, as ratios measured in one run; ``-- --quick`` for a first look."""
    with_torch(session, "bench")
    session.run("python", "-m", "bench", *session.posargs)


@nox.session(python="3.11")
def bench_today(session: nox.Session) -> None:
    """Graph breaks on transformers 5.23.0."""
    with_torch(session, "bench", TODAY)
    session.install("scipy")
    session.run("python", "-m", "bench", "--only", "breaks", *session.posargs)
