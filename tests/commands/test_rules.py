"""``graphmend rules``: every code that the code can say is explained, from the one place where its text lives."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from graphmend_hook.cli import main
from graphmend_hook.diagnostics import RULE_OF_CODE
from graphmend_hook.product.commands import rules as manual
from graphmend_hook.rules.order import ORDER

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command, and give its status and output."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str) -> tuple[int, str]:
        status = main(["rules", *arguments])
        captured = capsys.readouterr()
        return status, captured.out + captured.err

    return run


def test_tables(rules: Run) -> None:
    status, text = rules()
    assert status == 0
    for rule in ORDER:
        assert re.search(rf"│ {rule.name} +│ {rule.version} +│ {re.escape(manual.title(rule))}", text), rule.name
    for code in manual.codes():
        assert f"│ {code} " in text, code
    assert "Declined while rewriting, unless" in text


@pytest.mark.parametrize("rule", ORDER, ids=lambda rule: rule.name)
def test_page_of_a_rule(rule: object, rules: Run) -> None:
    status, text = rules(rule.name)
    assert status == 0
    assert text == manual.page(rule) + "\n"
    assert rules(rule.name.upper()) == (0, text)


CODES = {
    "GM102-R05": """\
GM102-R05: declined while rewriting, unless what is given away later is bound on both sides, or before
  Bind the name on both sides, or before the branch.

  def f(x):
      if x.sum() > 0:
          y = x + 1
      return y

  becomes

  def f(x):
      y = x
      if x.sum() > 0:
          y = x + 1
      return y

  `--report` and `graphmend explain` name each place, and what is in the way there.
  `# graphmend: off[where]` on its line says that it is to stay as it is.
  Manual page: graphmend rules where
""",
    "gm101-t16": """\
GM101-T16: the call reads the exception or the stack of its moment, or has a `stacklevel` that is no number
  Write `stacklevel` as a number, and leave `exc_info=True` out.

  def warning(text, **options):
      logger.warning(text, **options)

  def f(x):
      warning('in f', exc_info=True)
      return x + 1

  becomes

  def warning(text, **options):
      logger.warning(text, **options)

  def f(x):
      warning('in f')
      return x + 1

  `--report` and `graphmend explain` name each place, and what is in the way there.
  `# graphmend: off[defer]` on its line says that it is to stay as it is.
  Manual page: graphmend rules defer
""",
    "GM103-T01": """\
GM103-T01: GRAPHMEND_GUARDS=keep leaves guards alone
  Leave `--guards` at exact (GRAPHMEND_GUARDS, install(guards=...)).

  With `--guards keep`:

  def f(x):
      if x.sum() < 0:
          raise ValueError('negative')
      return x + 1

  is mended without `--guards keep`

  `--report` and `graphmend explain` name each place, and what is in the way there.
  `# graphmend: off[trap]` on its line says that it is to stay as it is.
  Manual page: graphmend rules trap
""",
    "GM104-T09": """\
GM104-T09: numbers that were captured on the way here were given up, and are read as they were written
  Look at the line that the reason names; `# graphmend: off[value]` there saves the attempts.
  `--report` and `graphmend explain` name each place, and what is in the way there.
  `# graphmend: off[value]` on its line says that it is to stay as it is.
  Manual page: graphmend rules value
""",
    "GM004": "GM004: nothing was mended in this process: no module matched MODULES with a site that a rule could mend; "
    "check GRAPHMEND_MODULES, or run with --report to see every module that was looked at\n",
    "GM100-R01": "GM100-R01: switched off in the source (# graphmend: off)\n",
}


@pytest.mark.parametrize("code", CODES)
def test_one_code(code: str, rules: Run) -> None:
    assert rules(code) == (0, CODES[code])


def test_code_that_refers_to_another_rule() -> None:
    codes = manual.codes()
    for number in ("R01", "R02", "R03", "R07", "R10", "R11", "R12", "R13", "R14", "R15"):
        assert codes[f"GM103-{number}"].sentence == codes[f"GM102-{number}"].sentence
        assert codes[f"GM103-{number}"].rule == "trap"


UNKNOWN = {
    "GM102-R99": "did you mean",
    "wher": "did you mean where?",
    "nonsense": "`graphmend rules` lists them",
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown_name(name: str, rules: Run) -> None:
    status, text = rules(name)
    assert status == 2
    assert text.startswith(f"graphmend rules: error: there is no rule or code {name!r}; {UNKNOWN[name]}")


def test_unknown_code_names_its_neighbours(rules: Run) -> None:
    assert "did you mean GM102-R05, " in rules("GM12-R05")[1]


def test_every_code_has_a_rule_and_one_line() -> None:
    for code in manual.codes().values():
        assert bool(code.rule) == (code.code.partition("-")[0] in RULE_OF_CODE), code
        assert code.sentence
        assert "\n" not in code.sentence


def test_without_docstrings(python: Callable[..., object]) -> None:
    done = python("-OO", "-c", "import sys; from graphmend_hook.cli import main; sys.exit(main(['rules', 'defer']))")
    expected = "graphmend rules: error: the manual pages are docstrings, which python -OO leaves out; run without -OO\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", expected)
