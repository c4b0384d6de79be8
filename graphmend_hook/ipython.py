"""The IPython extension: mends the cells of a notebook or a terminal session as the hook mends modules.

``%load_ext graphmend_hook`` puts an AST transformer first in ``shell.ast_transformers``, and a compiler in the place of
the shell's that does two things a transformer cannot: it hands the text of a cell on with its tree, and gives the code
of the rules' own functions the names that log records will show.
"""

from __future__ import annotations

import ast
import copy
import logging
import os
import sys
import weakref
from dataclasses import replace
from time import perf_counter
from types import CodeType, FunctionType
from typing import Any

from . import runtime
from .cells import rewrite_cell, triggered_in_cell
from .diagnostics import Outcome, notice, say_failed
from .hook.install import TRACING, active, install_settings
from .hook.reach import late
from .product.report.ledger import ModuleRecord, Status, ledger
from .product.report.text import as_html, as_text
from .rewrite import active_rules, name_functions
from .settings.config import Setting, Settings
from .source.templates import RUNTIME

log = logging.getLogger("graphmend_hook")
_MAGIC = "graphmend_report"
_AUTORELOAD = "IPython.extensions.autoreload"
_CELL = "graphmend_cell"  # the attribute of a cell's tree: its text, and the name of the file that its code has


class CellMender:
    """Switches a shell on when it is made: the AST transformer (`visit`), the compiler, the magic, and the way back."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._stock_compiler = shell.compile
        self._compiler = _handing_on(shell.compile)
        # Without modules it mends no import; it connects the runtime when torch is imported, as any hook does.
        settings = replace(Settings.from_env(), modules=())
        self._hook = install_settings(settings, Setting.variable, [setting.name for setting in TRACING])
        self._rules = () if self._hook.settings.disable else active_rules(self._hook.settings.rules)
        runtime.connect()  # where torch was imported before us; from now on the finder does it
        self._seen: weakref.WeakSet[FunctionType] = weakref.WeakSet()  # what was run and looked through already
        shell.compile = self._compiler
        self._edited: dict[str, int] = {}  # by the file of a mended module, when it was changed last
        shell.events.register("pre_run_cell", self._mend_what_was_reloaded)
        shell.events.register("post_run_cell", self._mend_what_was_run)
        shell.ast_transformers.insert(0, self)  # what comes before could change the tree that has the text
        shell.register_magic_function(_report, "line", _MAGIC)

    def unload(self) -> None:
        """Leave the cells to come as they are.  What is defined stays mended."""
        if self._shell.compile is self._compiler:
            self._shell.compile = self._stock_compiler
        if self in self._shell.ast_transformers:
            self._shell.ast_transformers.remove(self)
        self._shell.magics_manager.magics["line"].pop(_MAGIC, None)
        self._shell.events.unregister("pre_run_cell", self._mend_what_was_reloaded)
        self._shell.events.unregister("post_run_cell", self._mend_what_was_run)
        self._hook.uninstall()

    def visit(self, tree: ast.Module) -> ast.Module:
        """The mended tree of a cell; the same one where nothing is mended, for whatever reason."""
        text, filename = getattr(tree, _CELL, ("", ""))
        rules = triggered_in_cell(self._rules, text.encode())
        if not (text and rules):
            return tree
        start = perf_counter()
        label = self._shell.compile.format_code_name(filename)  # ("Cell", "In[3]") in this process's shells
        cell = label[1] if label else filename
        try:
            mended = copy.deepcopy(tree)
            sites = rewrite_cell(mended, text.encode(), rules, self._shell.user_ns)
        except Exception as error:
            log.warning("%s", notice("GM008", cell=cell, error=repr(error)), exc_info=log.isEnabledFor(logging.DEBUG))
            ledger.add(ModuleRecord(cell, filename, Status.FAILED, why=repr(error)))
            return tree
        if not sites:  # most cells define nothing: they would only fill the report
            return tree
        status = Status.MENDED if any(site.outcome is Outcome.MENDED for site in sites) else Status.UNCHANGED
        ledger.add(ModuleRecord(cell, filename, status, sites, None, perf_counter() - start))
        if status is Status.UNCHANGED:
            return tree
        self._shell.user_global_ns[RUNTIME] = runtime
        return mended

    def _mend_what_was_reloaded(self, _info: Any) -> None:
        """Mend what ``%autoreload`` has put into mended modules whose files were edited.

        It compiles single functions from a text of its own, with other lines.
        """
        try:
            for record in ledger.records if _AUTORELOAD in self._shell.extension_manager.loaded else ():
                module = sys.modules.get(record.name)
                if record.status is not Status.MENDED or module is None or not os.path.isfile(record.path):
                    continue
                time = os.stat(record.path).st_mtime_ns
                if self._edited.setdefault(record.path, time) != time:
                    self._edited[record.path] = time
                    for hook in active():
                        if hook.allowlist.covers(record.name, record.path):
                            aim = late.Aim(files={record.path: module}, moved=True)
                            late.mend(aim, hook.mender, hook.settings)
        except Exception as error:
            say_failed("the extension", "mending what %autoreload has reloaded", error)

    def _mend_what_was_run(self, _result: Any) -> None:
        """Mend the functions of a script that ``%run`` has run: like the cells they are the user's own program."""
        events = self._shell.events
        if events.callbacks["pre_run_cell"][-1] != self._mend_what_was_reloaded:  # behind that of autoreload
            events.unregister("pre_run_cell", self._mend_what_was_reloaded)
            events.register("pre_run_cell", self._mend_what_was_reloaded)
        try:
            found = late.functions_in_files(self._shell.user_ns, "__main__")
            functions = [each for each in found if each not in self._seen]
            if functions and not self._hook.settings.disable:
                self._seen.update(functions)
                late.mend(late.Aim(functions), self._hook.mender, self._hook.settings)
        except Exception as error:
            say_failed("the extension", "mending what %run has run", error)


_loaded: dict[int, CellMender] = {}


def is_loaded() -> bool:
    """Does a session of this process have the extension?"""
    return bool(_loaded)


def load(shell: Any) -> None:
    """Mend the cells of `shell` from now on.  IPython loads an extension once; twice is no error here either."""
    if id(shell) not in _loaded:
        _loaded[id(shell)] = CellMender(shell)


def unload(shell: Any) -> None:
    if id(shell) in _loaded:
        _loaded.pop(id(shell)).unload()


def _handing_on(compiler: Any) -> Any:
    """A compiler as the shell's own, with the same state, whose trees hold their text."""

    class MendingCompiler(type(compiler)):  # type: ignore[misc]
        def ast_parse(self, source: str, filename: str = "<unknown>", symbol: str = "exec") -> ast.AST:
            tree: ast.AST = super().ast_parse(source, filename, symbol)
            setattr(tree, _CELL, (source, filename))
            return tree

        def __call__(self, *args: Any, **kwargs: Any) -> CodeType:
            return name_functions(super().__call__(*args, **kwargs))

    made = MendingCompiler.__new__(MendingCompiler)
    made.__dict__ = compiler.__dict__  # `from __future__` imports and the numbers of cells, for both
    return made


class Report:
    """The report of this process at the time it is shown: text in a terminal, HTML in a notebook."""

    def __repr__(self) -> str:
        return as_text(ledger)

    def _repr_html_(self) -> str:
        return as_html(ledger)


def _report(_line: str) -> Report:
    """Show what graphmend_hook has mended in this process, what it has left alone, and why."""
    return Report()
