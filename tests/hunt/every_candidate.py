"""A plugin of pytest, for ``suites --every``: each test may be one of a tensor, in each module that is mended.

So code is mended that has nothing to do with tensors: Python's own modules, which have tests.  Those that were imported
before are imported anew, mended.
"""

from __future__ import annotations

import os
import sys

import graphmend_hook
from graphmend_hook import rewrite
from graphmend_hook.hook import allowlist
from graphmend_hook.settings import syntax
from graphmend_hook.source.taint import Evidence, Taint

MODULES = os.environ["SUITES_MODULES"].split(",")

Evidence.of = lambda _evidence, _node: Taint.YES  # type: ignore[method-assign]
rewrite.triggered = lambda rules, _source: list(rules)
syntax.UNMENDABLE = allowlist.UNMENDABLE = frozenset()
graphmend_hook.install(MODULES)
covered = allowlist.PatternSet(MODULES)
for name in [name for name in sys.modules if covered.matches_name(name)]:
    del sys.modules[name]
