"""The names that rewritten code calls, as `graphmend_hook.called` has them, read without torch."""

from __future__ import annotations

import ast
from pathlib import Path

import graphmend_hook

_FILE = Path(graphmend_hook.__file__).with_name("called.py")
_IMPORTS = [node for node in ast.parse(_FILE.read_text(encoding="utf-8")).body if isinstance(node, ast.ImportFrom)]
CALLED = frozenset(alias.name for node in _IMPORTS for alias in node.names)
