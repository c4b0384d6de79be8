"""``graphmend diff``: what is shown is what runs; modules are found without running any of their code."""

from __future__ import annotations

import ast
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from graphmend_hook.cli import main
from graphmend_hook.diagnostics import ConfigError
from graphmend_hook.hook.locate import source_file
from graphmend_hook.product.report.listing import listings
from graphmend_hook.rewrite import active_rules, changes_of
from graphmend_hook.settings.config import RULE_NAMES
from graphmend_hook.source.templates import OWN, RUNTIME, readable

RULES = active_rules(RULE_NAMES)
Write = Callable[[str, str], Path]
Run = Callable[..., tuple[int, str]]

MODEL = """\
import logging

import torch

logger = logging.getLogger(__name__)


class Block:
    def forward(self, x):
        y = self.norm(x)
        # half precision overflows
        if torch.isinf(y).any():
            y = torch.clamp(y, min=-1.0, max=1.0)  # to the bounds
        logger.warning("clamped")
        logger.info(*y)
        return y

    def other(self, x):
        print(*x)
        return x
"""
SHOWN = """\
{path}
  sites mended: 2 (where 1, defer 1); declined: 2
  numbered lines: the original, as eager runs it; +: added; GM: graphmend_hook.runtime

def Block.forward
              9       def forward(self, x):
             10           y = self.norm(x)
             11           # half precision overflows
where           +         if GM.compiling():
                +             TEST = torch.isinf(y).any()
                +             OUTCOME = None
                +             if GM.undecided(TEST):
                +
                +                 def THEN(EFFECTS, y):
                +                     y = GM.judged(GM.begun(), torch.clamp(y, min=-1.0, max=1.0))
                +                     return (y,)
                +
                +                 def ELSE(EFFECTS, y):
                +                     return (y,)
                +                 OUTCOME = GM.select(TEST, (THEN, ELSE), (y,), None)
                +             if OUTCOME is not None:
                +                 y = OUTCOME[0]
                +             elif GM.settle(TEST):
                +                 y = torch.clamp(y, min=-1.0, max=1.0)
                +         else:
             12               if torch.isinf(y).any():
             13                   y = torch.clamp(y, min=-1.0, max=1.0)  # to the bounds
defer           +         if GM.tracing():
                +             TARGET = logger
                +             VALUES = ()
                +             if GM.deferrable(TARGET, 'warning', VALUES):
                +                 GM.defer(lambda TARGET, VALUES: TARGET.warning('clamped'), TARGET, 'warning', VALUES)
                +             else:
                +                 TARGET.warning('clamped')
                +         else:
             14               logger.warning("clamped")
GM101-R02    15           logger.info(*y)
             16           return y
GM101-R02 line 15: the call unpacks arguments; write them out

declined in other functions: GM101-R02 1
"""


@pytest.fixture
def diff(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run the command in `tmp_path`, and give its status and output."""
    monkeypatch.chdir(tmp_path)
    for name in ("GRAPHMEND_RULES", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str) -> tuple[int, str]:
        status = main(["diff", *arguments])
        captured = capsys.readouterr()
        return status, captured.out + captured.err

    return run


def test_the_text(diff: Run, write: Write) -> None:
    path = write("model.py", MODEL)
    status, text = diff(str(path))
    assert text == SHOWN.format(path=path)
    assert status == 0


# Functions whose mended form is put together in every way that there is.
FORMS = {
    "a string of several lines": '''
        def f(self, x):
            print(f"""{x}
                      deep""", """
                      deeper""")
    ''',
    "comments, a multi-line call, and a string that is not indented": '''
        def f(self, x):
            # above
            if x.sum() > 0:  # beside
                # inside
                x = torch.add(
                    x,
                    1,  # deep
                )
        # at the margin
                message = """text
        of no indentation"""
            return x, "after"
    ''',
    "elif": """
        def f(self, x, a):
            if a is None:
                y = x
            elif torch.any(x):
                y = x + 1
            else:
                y = x - 1
            return y
    """,
    "else with an if of its own": """
        def f(self, x, a):
            if a is None:
                y = x
            else:
                if torch.any(x):
                    y = x + 1
                else:
                    y = x - 1
            return y
    """,
    "a site inside another": """
        def f(self, x):
            if torch.any(x):
                print("any", x)
                x = x + 1
            return x
    """,
    "a guard with a message, and an assertion": """
        @decorated
        def f(self, x):
            if x.max() > 9:
                raise ValueError(f"too large: {x.max()}")
            assert torch.all(x), "all"
            n = x.sum().item()
            if n > 3:
                raise ValueError(n)
            return x if torch.any(x) else -x
    """,
    "tabs": "def f(self, x):\n\tif torch.any(x):\n\t\tx = x + 1\n\treturn x\n",
    "a nested function": """
        def f(self, x):
            def g(y):
                print(y)
                return y
            print(x)
            return g(x)
    """,
    "an attribute and a lookup": """
        def f(self, x):
            log = logging.getLogger("a")
            if torch.any(x):
                self.scale = self.scale * 2
            return x * self.scale
    """,
}


def shown_and_run(source: str) -> list[tuple[str, str]]:
    """Each mended function as it is listed, and as it runs, both without comments and layout."""
    changes = changes_of(source.encode(), "<source>", RULES)
    nodes = {
        id(root.node): root.node for change in changes if change.emitted for *_, root in [change.function.lineage()]
    }
    pairs = []
    for listing, node in zip(listings(source.encode(), changes, 10**9), nodes.values(), strict=True):
        assert None not in listing.lines
        lines = [line.text for line in listing.lines if line]
        text = "\n".join(["if True:", *lines] if lines[0][:1].isspace() else lines)  # a docstring keeps its indentation
        (shown,) = ast.parse(text).body
        pairs.append((ast.unparse(shown.body if isinstance(shown, ast.If) else shown), readable(ast.unparse(node))))
    return pairs


@pytest.mark.parametrize("title", FORMS)
def test_what_is_shown_is_what_runs(title: str) -> None:
    pairs = shown_and_run("import logging\nimport torch\n" + textwrap.dedent(FORMS[title]))
    assert pairs
    for shown, run in pairs:
        assert shown == run


def test_what_is_shown_of_a_library_is_what_runs() -> None:
    try:
        files = [
            source_file(f"transformers.models.{name}.modeling_{name}") for name in ("t5", "bart", "whisper", "phi3")
        ]
    except ConfigError:
        pytest.skip("transformers is not installed")
    pairs = [pair for file in files for pair in shown_and_run(Path(file).read_text(encoding="utf-8"))]
    assert len(pairs) > 10
    for shown, run in pairs:
        assert shown == run


def test_elif_stays_one(diff: Run, write: Write) -> None:
    write("model.py", "import torch\n" + textwrap.dedent(FORMS["elif"]))
    _, text = diff("model.py", "--context=1")
    assert "+     elif GM.compiling():\n" in text
    assert "              6           if torch.any(x):\n" in text


def test_statement_that_shares_its_line(diff: Run, write: Write) -> None:
    write("model.py", 'def f(x):\n    if x: print("é", x); x = 1\n    return x\n')
    _, text = diff("model.py")
    lines = text.splitlines()[4:]
    assert lines[2] == '              2       if x: print("é", x); x = 1'
    assert lines[3] == "defer           +           if GM.tracing():"
    assert lines[-3:-1] == ["                +           else:", "                +               print('é', x)"]


def test_statement_that_ends_its_line(diff: Run, write: Write) -> None:
    write("model.py", "def f(x):\n    if x: print(x)\n    return x\n")
    _, text = diff("model.py")
    lines = text.splitlines()[4:]
    assert lines[2] == "              2       if x: print(x)"
    assert lines[3] == "defer           +           if GM.tracing():"


def test_our_names_are_readable(diff: Run, write: Write) -> None:
    write("model.py", "import torch\n" + textwrap.dedent(FORMS["an attribute and a lookup"]))
    _, text = diff("model.py")
    assert "def THEN(EFFECTS, self):\n" in text
    assert OWN not in text
    assert RUNTIME not in text


def test_nested_site_is_marked_where_it_stands(diff: Run, write: Write) -> None:
    write("model.py", "import torch\n" + textwrap.dedent(FORMS["a site inside another"]))
    _, text = diff("model.py")
    assert 'defer         5               print("any", x)\n' in text


def test_lines_far_from_a_site_are_left_out(diff: Run, write: Write) -> None:
    body = "".join(f"    x = x + {number}\n" for number in range(20))
    write("model.py", f"def f(x):\n{body}    print(x)\n{body}    return x\n")
    _, text = diff("model.py", "--context", "1")
    numbers = [line[10:15].strip() for line in text.splitlines()[5:] if line[16:17] != "+"]
    assert numbers == ["21", "22", "23"]
    _, text = diff("model.py", "--function", "f", "--context", "0")
    assert "x + 19" not in text


def test_nothing_mended(diff: Run, write: Write) -> None:
    path = write("model.py", "def f(x):\n    print(*x)\n")
    expected = f"{path.name}\n  nothing is mended; declined: 1\n"
    expected += "GM101-R02 line 2 in f: the call unpacks arguments; write them out\n"
    assert diff("model.py") == (1, expected)
    write("model.py", "x = 1\n")
    assert diff("model.py") == (1, "model.py\n  nothing is mended; there are no sites\n")


def test_one_function(diff: Run, write: Write) -> None:
    write("model.py", MODEL)
    status, text = diff("model.py", "--function", "Block.forward")
    assert (status, "declined in other functions" in text) == (0, False)
    status, text = diff("model.py", "--function", "Block")
    assert (status, "declined in other functions" in text) == (0, True)
    status, text = diff("model.py", "--function", "Block.other")
    assert (status, text.splitlines()[2:]) == (
        1,
        ["GM101-R02 line 19 in Block.other: the call unpacks arguments; write them out"],
    )
    assert diff("model.py", "--function", "Bloc") == (
        2,
        "graphmend diff: error: --function: there is no function 'Bloc' with a site; those with one are "
        "Block.forward, Block.other\n",
    )


def test_one_rule(diff: Run, write: Write) -> None:
    write("model.py", MODEL)
    status, text = diff("model.py", "--rule", "where")
    assert (status, "GM.select" in text, "GM.defer" in text) == (0, True, False)
    status, text = diff("model.py", "--rule", "trap")
    assert (status, text.splitlines()[1]) == (1, "  nothing is mended; there are no sites")
    assert diff("model.py", "--rule", "were") == (
        2,
        "graphmend diff: error: --rule: there is no rule 'were'; use one of defer, trap, sweep, where, value, grad\n",
    )


def test_one_rule_inside_what_another_mended(diff: Run, write: Write) -> None:
    """On its own it would seem to be mended for eager too."""
    write("model.py", "import torch\n" + textwrap.dedent(FORMS["a site inside another"]))
    status, text = diff("model.py", "--rule", "defer")
    assert (status, text.splitlines()[1]) == (0, "  sites mended: 2 (where 1, defer 1); declined: 0")


def test_rules_of_the_environment(diff: Run, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write("model.py", MODEL)
    monkeypatch.setenv("GRAPHMEND_RULES", "where")
    assert diff("model.py")[1].splitlines()[1] == "  sites mended: 1 (where 1); declined: 0"


def test_module_is_found_without_running_its_packages(diff: Run, write: Write, tmp_path: Path) -> None:
    write("dangerous/__init__.py", "raise SystemExit('ran')")
    write("dangerous/inner/__init__.py", "raise SystemExit('ran')")
    write("dangerous/inner/model.py", MODEL)
    status, text = diff("dangerous.inner.model")
    assert (status, text.splitlines()[0]) == (0, str(tmp_path / "dangerous/inner/model.py"))
    assert not any(name.startswith("dangerous") for name in sys.modules)


def test_module_of_an_editable_install(
    diff: Run, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its directory is known to a finder only."""
    from importlib.machinery import PathFinder

    write("elsewhere/editable/model.py", MODEL)
    write("elsewhere/editable/__init__.py", "raise SystemExit('ran')")

    class Finder:
        @staticmethod
        def find_spec(name: str, path: object = None, target: object = None) -> object:
            return PathFinder.find_spec(name, [str(tmp_path / "elsewhere")]) if name == "editable" else None

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder])
    assert diff("editable.model")[0] == 0


BAD = {
    "absent": "there is no module 'absent': this python ({python}) does not find 'absent'",
    "pkg.absent": "there is no module 'pkg.absent': the package 'pkg' has no 'absent' in its directory",
    "model.inner": "there is no module 'model.inner': 'model' is not a package",
    "space": "'space' is a package without a source file of its own; name one of its modules",
    "broken.py": "broken.py cannot be parsed: invalid syntax (broken.py, line 1)",
    "absent.py": "absent.py cannot be read: No such file or directory; name a module or a Python file",
    "./pkg": "pkg cannot be read: Is a directory; name a module or a Python file",
    "torch.nn": "MODULE: 'torch' cannot be mended; name the libraries that run inside torch.compile",
}


@pytest.mark.parametrize("target", BAD)
def test_targets_that_cannot_be_shown(target: str, diff: Run, write: Write, tmp_path: Path) -> None:
    write("pkg/__init__.py", "")
    write("model.py", "")
    write("broken.py", "print( = ")
    (tmp_path / "space").mkdir()
    expected = BAD[target].format(python=sys.executable)
    assert diff(target) == (2, f"graphmend diff: error: {expected}\n")


@pytest.mark.parametrize(("changes", "coloured"), [({}, False), ({"FORCE_COLOR": "1"}, True)])
def test_colours(
    changes: dict[str, str], coloured: bool, diff: Run, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("model.py", MODEL)
    monkeypatch.setenv("TERM", "xterm-256color")
    for name, value in changes.items():
        monkeypatch.setenv(name, value)
    assert ("\x1b[32m+" in diff("model.py")[1]) is coloured
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[32m" not in diff("model.py")[1]
