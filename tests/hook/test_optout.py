"""``# graphmend: off`` in the source: what it covers, and what it does not."""

from __future__ import annotations

import textwrap

import pytest
from hook_cases import RULES

from graphmend_hook.diagnostics import Outcome
from graphmend_hook.rewrite import SWITCHED_OFF, rewrite

BODY = """
def f(x):
    print(x)
    if x:
        print(x, 1)

def g(x):
    print(x)
"""

CASES = {
    # Lines of the sites that are switched off; every other site of the source is mended.
    "nothing": (BODY, ""),
    "module, first line": ("# graphmend: off" + BODY, "3 5 8"),
    "module, before the docstring": ('# graphmend: off\n"""Doc."""' + BODY, "4 6 9"),
    "module, after the docstring": ('"""Doc.\n\nmore\n"""\n# graphmend: off' + BODY, "7 9 12"),
    "module, after coding and shebang": ("#!/usr/bin/python\n# coding: utf-8\n# graphmend: off" + BODY, "5 7 10"),
    "module, one rule": ("# graphmend: off[defer]" + BODY, "3 5 8"),
    "module, more rules": ("# graphmend: off[other, defer]" + BODY, "3 5 8"),
    "module, another rule": ("# graphmend: off[other]" + BODY, ""),
    "module, no rule": ("# graphmend: off[]" + BODY, ""),
    "module, after the first statement": ("import os\n# graphmend: off" + BODY, ""),
    "module, last line": (BODY + "# graphmend: off\n", ""),
    "module, nothing but a docstring": ('"""Doc."""\n# graphmend: off\n', ""),
    "module, in the docstring": ('"""\n# graphmend: off\n"""' + BODY, ""),
    "no spaces": ("#graphmend:off" + BODY, "3 5 8"),
    "with a reason": ("# graphmend: off  because of issue 7" + BODY, "3 5 8"),
    "after another comment": ("# noqa  # graphmend: off" + BODY, "3 5 8"),
    "other text": ("# graphmend off\n# see graphmend: off\n# graphmend: of" + BODY, ""),
    "def line": (
        """
        def f(x):  # graphmend: off
            print(x)
            def inner():
                print(x)
        def g(x):
            print(x)
        """,
        "3 5",
    ),
    "def line of the inner function": (
        """
        def f(x):
            print(x)
            def inner():  # graphmend: off
                print(x)
            print(x)
        """,
        "5",
    ),
    "def on one line": ("def f(x): print(x)  # graphmend: off\ndef g(x): print(x)\n", "1"),
    "method": (
        """
        class C:
            def f(self):  # graphmend: off[defer]
                print(self)
            def g(self):
                print(self)
        """,
        "4",
    ),
    "decorator": (
        """
        import functools
        @functools.cache  # graphmend: off
        @functools.wraps
        def f(x):
            print(x)
        def g(x):
            print(x)
        """,
        "6",
    ),
    "header of many lines, first": (
        """
        def f(  # graphmend: off
            x,
            y=1,
        ):
            print(x)
        """,
        "6",
    ),
    "header of many lines, middle": (
        """
        def f(
            x,  # graphmend: off
            y=1,
        ):
            print(x)
        """,
        "6",
    ),
    "header of many lines, last": (
        """
        def f(
            x,
        ) -> None:  # graphmend: off
            print(x)
        """,
        "5",
    ),
    "header, another rule": ("def f(x):  # graphmend: off[other]\n    print(x)\n", ""),
    "statement": (
        """
        def f(x):
            print(x)  # graphmend: off
            print(x)
        """,
        "3",
    ),
    "statement of many lines": (
        """
        def f(x):
            print(
                x,  # graphmend: off
                x,
            )
            print(
                x,
            )  # graphmend: off[defer]
            print(
                x,
            )
        """,
        "3 7",
    ),
    "statement, one rule of two": (
        """
        def f(x):
            print(x)  # graphmend: off[defer, other]
            print(x)  # graphmend: off[other]
        """,
        "3",
    ),
    "two statements on a line": ("def f(x):\n    print(x); print(x)  # graphmend: off\n", "2 2"),
    "line before a statement": (
        """
        def f(x):
            x = 1
            # graphmend: off
            print(x)
        """,
        "",
    ),
    "text in a string": (
        """
        def f(x):
            print("# graphmend: off", x)
            print(f"# graphmend: off {x}")
            print('''
        # graphmend: off
            ''', x)
        """,
        "",
    ),
    "string before a comment": (
        """
        def f(x):
            print("# graphmend: on", x)  # graphmend: off
        """,
        "3",
    ),
    "continued line": ("def f(x):\n    print(x, \\\n        1)  # graphmend: off\n    print(x)\n", "2"),
    "windows line ends": (BODY.replace("    print(x)\n    if", "    print(x)  # graphmend: off\n    if"), "3"),
    "no line end at the end": ("def f(x):\n    print(x)  # graphmend: off", "2"),
    "decorator of the first statement": (
        "@decorator  # graphmend: off\ndef f(x):\n    print(x)\ndef g(x):\n    print(x)\n",
        "3",
    ),
    "decorator of the first inner function": (
        """
        def f(x):
            @decorator  # graphmend: off
            def inner():
                print(x)
            print(x)
        """,
        "5",
    ),
    "longer word": ("def f(x):\n    print(x)  # graphmend: offline\n    print(x)  # graphmend: off_by_one\n", ""),
}


# Defects of graphmend_hook/source/optout.py.
def sites(source: str) -> tuple[str, str]:
    """The lines of the sites that are switched off, and those of the mended ones; nothing else may happen."""
    found = rewrite(source.encode(), "x.py", RULES)
    off = [site for site in found.sites if site.outcome is Outcome.DECLINED]
    assert {(site.code, site.reason) for site in off} <= {(SWITCHED_OFF.code, SWITCHED_OFF.text)}
    mended = [site for site in found.sites if site.outcome is Outcome.MENDED]
    assert (found.code is None) == (not mended)
    return " ".join(str(site.line) for site in off), " ".join(str(site.line) for site in mended)


def all_sites(source: str) -> list[str]:
    off, mended = sites(source.replace("graphmend:", "________:"))
    assert off == ""
    return mended.split()


@pytest.mark.parametrize("case", CASES)
def test_optout(case: str) -> None:
    source, off = CASES[case]
    source = textwrap.dedent(source)
    if "windows" in case:
        source = source.replace("\n", "\r\n")
    everything = all_sites(source)
    rest = [line for line in everything if line not in off.split()]
    assert sites(source) == (off, " ".join(rest))
