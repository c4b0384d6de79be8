"""Wrong uses, each with what is said: what a test holds them to, and what docs/wrong-uses.md shows.

`python tests/commands/wrong_uses.py` tries each and prints the page.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import graphmend_hook
from graphmend_hook import cli
from graphmend_hook.diagnostics import GraphmendError, notice
from graphmend_hook.rewrite import misspelt
from graphmend_hook.settings.config import RULE_NAMES, Settings

HEADING = """# Wrong uses, and what is said

What `graphmend_hook` answers to settings, options and comments that cannot mean anything. Each was tried as it stands here
(`pytest tests/commands/test_wrong_uses.py`; `python tests/commands/wrong_uses.py > docs/wrong-uses.md` makes this page).
A wrong setting ends the program before anything is imported, with one line and no traceback.
"""


@dataclass(frozen=True)
class Use:
    """One wrong use.  words: of a command line, whose first is the command; env: variables; comment: in a source."""

    words: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    comment: str = ""

    def __str__(self) -> str:
        shown = [f"{name}={_quoted(value)}" for name, value in self.env.items()]
        return self.comment or " ".join([*shown, *(("graphmend", *map(_quoted, self.words)) if self.words else ())])


def _quoted(word: str) -> str:
    return f"'{word}'" if " " in word or not word else word


def setting(name: str, value: str) -> Use:
    return Use(env={f"GRAPHMEND_{name}": value})


def command(*words: str) -> Use:
    return Use(words)


USES = (
    setting("MODULES", "1x?"),
    setting("MODULES", "transformers.class"),
    setting("MODULES", "my-package"),
    setting("MODULES", "transformers."),
    setting("MODULES", "*"),
    setting("MODULES", "torch.nn"),
    setting("MODULES", "os"),
    setting("DENY", "a..b"),
    setting("RULES", "whre"),
    setting("RULES", "-whre"),
    setting("GUARDS", "exactly"),
    setting("STRICT", "perhaps"),
    setting("LATE", "2"),
    setting("LOG", "loud"),
    setting("REPORT", "{foo}.json"),
    setting("REPORT", "reports/{rnk}.json"),
    setting("CACHE_DIR", "~nobody-has-this-name/cache"),
    setting("MODULE", "transformers"),
    setting("CACHEDIR", "/tmp"),
    setting("FOO", "1"),
    Use(comment="# graphmend: of"),
    Use(comment="# graphmend: off[whre]"),
    Use(comment="# graphmend: off[]"),
    Use(comment="# graphmend: off[defer"),
    Use(comment="# graphmend: on"),
    Use(comment="# graphmend off"),
    command("run"),
    command("run", "missing.py"),
    command("run", "-m", "no_such_module"),
    command("run", "-m"),
    command("run", "-c"),
    command("run", "--modules"),
    command("run", "--modul", "transformers", "train.py"),
    command("run", "--modules", "transformers!", "train.py"),
    command("run", "--guards=never", "train.py"),
    command("run", "-X", "dev", "train.py"),
    command("explan", "train.py"),
    command("explain"),
    command("explain", "--update-baseline", "train.py"),
    command("explain", "--baseline", "missing.json", "train.py"),
    command("explain", "--baseline", "train.py", "train.py"),
    command("diff"),
    command("diff", "no_such_module"),
    command("diff", "torch.nn"),
    command("rules", "GM102-R0"),
    command("rules", "wher"),
    command("report", "show", "missing.json"),
    command("report", "show", "train.py"),
    command("cache", "warm"),
    command("cache", "warm", "transformers", "--jobs", "0"),
    command("cache", "prune"),
    command("cache", "prune", "--max-age", "soon"),
    command("doctor", "--modules", "1x?"),
    command("doctor", "-q"),
)


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A current directory with a script, which the uses name."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        Path("train.py").write_text("print(1)\n")
        try:
            yield Path(place)
        finally:
            os.chdir(before)


def answer(use: Use) -> tuple[str, int]:
    """The last line that is said on stderr, and the exit status (0: the program goes on)."""
    if use.comment:
        found = misspelt(use.comment.encode())
        rules = ", ".join(RULE_NAMES)
        said = [notice("GM020", path="model.py", line=line, comment=text, rules=rules) for line, text in found.items()]
        return "".join(said), 0
    if not use.words:
        try:
            Settings.from_env(use.env)
        except GraphmendError as error:
            return f"graphmend_hook: error: {error}", 1
        return "", 0
    said = io.StringIO()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GRAPHMEND_")}
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.dict(os.environ, kept, clear=True))
        stack.enter_context(mock.patch("sys.path", sys.path[:]))
        stack.enter_context(contextlib.redirect_stderr(said))
        stack.enter_context(mock.patch.object(cli.children, "switch_on"))
        stack.callback(graphmend_hook.uninstall)
        try:
            status = cli.main(use.words)
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
    lines = said.getvalue().replace(sys.executable, "python").replace(f"{os.getcwd()}/", "").splitlines()
    return "".join(lines[-1:]), status


def page() -> str:
    rows = []
    with folder():
        for use in USES:
            said, status = answer(use)
            rows.append(f"| `{use}` | {said.replace('|', chr(92) + '|')} | {status} |")
    return "\n".join([HEADING, "| use | what is said | exit status |", "|---|---|---|", *rows, ""])


if __name__ == "__main__":
    sys.stdout.write(page())
