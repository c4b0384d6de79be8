"""How many sites of each kind a package has, how many are mended, and why the others are not.

usage: python -m bench.coverage [--package NAME] [--sample N] [--seed N] [--json PATH]

The sites are those that the rules see in the source; what the traced values make of a mended one shows only when it
is traced (`--report` of a run).  Last come the functions of the runtime that rewritten code calls: in how many files,
and those that no file calls.  ``--sample`` prints that many declined sites at random, with their source.
"""

from __future__ import annotations

import argparse
import dis
import importlib.metadata
import importlib.util
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import CodeType

import graphmend_hook.rules
from graphmend_hook.diagnostics import Outcome, Site
from graphmend_hook.rewrite import active_rules, rewrite
from graphmend_hook.settings.config import RULE_NAMES
from graphmend_hook.source.templates import RUNTIME

# Sources from which others are generated, and models of other frameworks.
_NEVER_TRACED = ("modular_", "modeling_tf_", "modeling_flax_")


def sources(package: str) -> Iterator[Path]:
    """The Python files of an installed package that torch.compile may meet."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        sys.exit(f"bench.coverage: {package!r} is not an installed package; name one with --package")
    for root in spec.submodule_search_locations:
        yield from sorted(path for path in Path(root).rglob("*.py") if not path.name.startswith(_NEVER_TRACED))


def kind(site: Site, lines: list[str]) -> str:
    """The form of a site, by the first word of its statement."""
    word = lines[site.line - 1].split(maxsplit=1)[0].rstrip(":(")
    if site.rule == "defer":
        return "log, warning or print"
    if word in ("if", "elif"):
        return "if"
    return "assert" if word == "assert" else "check function" if site.rule == "trap" else "conditional expression"


def called(code: CodeType) -> set[str]:
    """The names of the runtime's functions that the code calls."""
    steps = pairwise(dis.get_instructions(code))
    names = {used.argval for loaded, used in steps if loaded.argval == RUNTIME and used.opname.startswith("LOAD_")}
    return names.union(*(called(inner) for inner in code.co_consts if isinstance(inner, CodeType)))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.coverage", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--package", default="transformers")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()

    rules = active_rules(RULE_NAMES)
    totals: Counter[tuple[str, str, str]] = Counter()
    declined: list[tuple[Path, Site, list[str]]] = []
    files, calls = 0, Counter[str]()
    for path in sources(options.package):
        source = path.read_bytes()
        files += 1
        lines = source.decode("utf-8", "replace").splitlines()
        rewritten = rewrite(source, str(path), rules)
        calls.update(called(rewritten.code) if rewritten.code else ())
        for site in rewritten.sites:
            totals[site.rule, kind(site, lines), site.code or "mended"] += 1
            if site.outcome is Outcome.DECLINED:
                declined.append((path, site, lines))
    print(f"{options.package} {importlib.metadata.version(options.package)}: {files} files")
    groups = sorted({key[:2] for key in totals})
    for rule, form in groups:
        counts = {code: count for (*key, code), count in totals.items() if tuple(key) == (rule, form)}
        total, mended = sum(counts.values()), counts.pop("mended", 0)
        reasons = ", ".join(f"{code} {count}" for code, count in sorted(counts.items(), key=lambda item: -item[1]))
        print(f"  [{rule}] {form}: {total} sites, {mended} mended, {total - mended} declined ({reasons or 'none'})")
    if options.json:
        options.json.write_text(json.dumps({" | ".join(key): count for key, count in sorted(totals.items())}, indent=1))
    for path, site, lines in random.Random(options.seed).sample(declined, min(options.sample, len(declined))):
        print(f"\n{site.code} {path}:{site.line} in {site.function}\n  {site.reason}")
        print("\n".join(f"  | {line}" for line in lines[site.line - 1 : site.line + 9]))
    print("calls:", ", ".join(f"{name} {count}" for name, count in calls.most_common()))
    callable_names = vars(importlib.import_module(f"{graphmend_hook.__name__}.called"))  # needs torch
    unused = sorted({name for name in callable_names if not name.startswith("_")}.difference(calls))
    print("never called:", ", ".join(unused) or "none")


if __name__ == "__main__":
    main()
