"""``python -m bench.rewriting PACKAGE OUT [BEFORE]``: what the rules make of every module of a package, and the time.

OUT gets a digest of the code and the sites of each module.  Modules whose digest is another one in BEFORE, the OUT of
another version, are named: a change that is only to make the rewriter faster must give none.  Set PYTHONHASHSEED.
"""

from __future__ import annotations

import gc
import hashlib
import importlib.util
import json
import marshal
import sys
import time
import warnings
from pathlib import Path

from graphmend_hook.rewrite import active_rules, rewrite
from graphmend_hook.settings.config import RULE_NAMES

_PLAIN = 2  # the version of marshal that does not tell one object from two equal ones


def measure(package: str) -> tuple[dict[str, str], float, float]:
    """By module: the digest; seconds of CPU that rewriting took, and that compiling alone does."""
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    root, rules = Path(spec.origin).parent, active_rules(RULE_NAMES)
    digests: dict[str, str] = {}
    rewriting = compiling = 0.0
    for path in sorted(root.rglob("*.py")):
        name, source = path.relative_to(root).as_posix(), path.read_bytes()
        gc.collect()
        gc.disable()  # as the loader does
        start = time.process_time()
        result = rewrite(source, name, rules)
        between = time.process_time()
        compile(source, name, "exec", dont_inherit=True)
        rewriting, compiling = rewriting + between - start, compiling + time.process_time() - between
        gc.enable()
        made = marshal.dumps((result.code, tuple(map(tuple, result.sites))), _PLAIN)
        digests[name] = hashlib.sha256(made).hexdigest()
    return digests, rewriting, compiling


def main() -> None:
    package, out, *before = sys.argv[1:]
    warnings.simplefilter("ignore")
    digests, rewriting, compiling = measure(package)
    Path(out).write_text(json.dumps(digests), encoding="utf-8")
    print(f"{len(digests)} modules: {rewriting:.1f} s to rewrite, {compiling:.1f} s to compile")
    for other in before:
        known = json.loads(Path(other).read_text(encoding="utf-8"))
        changed = sorted(name for name in digests.keys() | known.keys() if digests.get(name) != known.get(name))
        print(f"{len(changed)} are not as in {other}", *changed, sep="\n  ")


if __name__ == "__main__":
    main()
