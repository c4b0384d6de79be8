"""Freezes what is emitted, decided and measured, so that a change of structure can be held to it.

``python -m bench.frozen OUT.json [--parts emitted,rows,trained] [--everyday FOLDER] [--cases FOLDER] [--census FOLDER]
[--only A,B]`` writes, for the package that is imported and the transformers that is installed:

``emitted``: of each module, a digest of its code, and each site with its rule, code and what stands in its place;
``decided``: of each program, compiled on the eager backend and called with changing data in a process of its own:
    graphs, breaks, each frame that was compiled with the attempts it took, what was left while tracing, errors, and
    the seconds of processor time in Dynamo.

``python -m bench.frozen --compare BEFORE.json AFTER.json [--renamed OLD=NEW,...]`` prints what differs.  Exit status 1:
a decision does, which is the outcome or code of a site, or anything that is decided of a program but the seconds.
Rows and models that are trained are those of the tests.  FOLDER of --cases is one that `bench.frozen_calls` has
recorded; of --census, that of the survey's `census.py`.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib.util
import json
import marshal
import multiprocessing
import os
import re
import statistics
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from importlib import metadata
from pathlib import Path
from typing import Any

from graphmend_hook.rewrite import active_rules, changes_of, rewrite
from graphmend_hook.settings.config import RULE_NAMES  # what is not public of the package stands here alone

from .arms import Worker
from .frozen_programs import source_of

Frozen = dict[str, Any]
_PARTS = ("emitted", "rows", "trained")
_PLAIN = 2  # the version of marshal that does not tell one object from two equal ones
_DECIDED = ("graphs", "operations", "breaks", "frames", "errors")
_SHOWN = 12  # differences of a kind


# --- to freeze -------------------------------------------------------------------------------------------------------


def emitted(folder: Path) -> Frozen:
    """By file of the folder: a digest of its code, and its sites, if it has any."""
    paths = [(path, path.relative_to(folder).as_posix()) for path in sorted(folder.rglob("*.py"))]
    with multiprocessing.get_context("fork").Pool(min(2, os.cpu_count() or 1)) as pool:
        found = pool.starmap(_emitted_of, paths, chunksize=16)
    return {name: about for (_, name), about in zip(paths, found, strict=True) if about}


def _emitted_of(path: Path, name: str) -> Frozen | None:
    warnings.simplefilter("ignore")
    source, rules = path.read_bytes(), active_rules(RULE_NAMES)
    try:
        result = rewrite(source, name, rules)
    except SyntaxError:
        return None
    if not result.sites:
        return None
    changes = changes_of(source, name, rules)
    sites = []
    for change in changes:
        text = "\n".join(ast.unparse(ast.fix_missing_locations(part)) for part in change.emitted)
        sites.append([change.site.rule, change.site.function, change.site.line, change.site.code, text])
    made = marshal.dumps(result.code, _PLAIN) if result.code else b""
    return {"code": hashlib.sha256(made).hexdigest()[:16], "sites": sites}


def decided(source: str, only: Sequence[str]) -> Frozen:
    """By program of the source, what `frozen_programs.seen_of` sees of it."""
    found: Frozen = {}
    variables = {
        "GRAPHMEND_MODULES": ",".join((*source_of(source).mended, "bench.small")),
        **{"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "TORCH_DYNAMO_RUN_GC_AFTER_COMPILE": "0"},
    }
    with tempfile.TemporaryDirectory() as folder:
        worker = Worker("on", Path(folder), ("bench.frozen_programs", source), variables)
        try:
            for name in worker("names"):
                if not only or any(fnmatch(name, pattern) for pattern in only):
                    found[name] = worker("observe", name=name)
                    print(source, name, json.dumps(found[name])[:160], file=sys.stderr, flush=True)
        finally:
            worker.close()
    return found


def freeze(given: argparse.Namespace) -> Frozen:
    sources = {name: name for name in given.parts if name != "emitted"}
    sources |= {name: str(folder) for name in ("everyday", "cases", "census") if (folder := getattr(given, name))}
    frozen: Frozen = {
        "versions": {name: metadata.version(name) for name in ("torch", "transformers")},
        "emitted": {},
        "decided": {name: decided(source, given.only) for name, source in sources.items()},
    }
    if "emitted" in given.parts:
        spec = importlib.util.find_spec("transformers")
        assert spec is not None
        assert spec.origin is not None
        folders = {"transformers": Path(spec.origin).parent, "everyday": given.everyday, "cases": given.cases}
        frozen["emitted"] = {name: emitted(folder) for name, folder in folders.items() if folder}
    return frozen


# --- to compare ------------------------------------------------------------------------------------------------------


def compare(before: Frozen, after: Frozen) -> bool:
    """Print what differs; does a decision?"""
    if before["versions"] != after["versions"]:
        print(f"other versions: {before['versions']}, {after['versions']}")
    sites = [_compare_emitted(*each) for each in _common(before["emitted"], after["emitted"])]
    programs = [_compare_decided(*each) for each in _common(before["decided"], after["decided"])]
    return any([*sites, *programs])


def _common(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """What both have, by name; says how many are left out."""
    left = [len(before.keys() - after.keys()), len(after.keys() - before.keys())]
    if any(left):
        print(f"  left out: {left[0]} that only BEFORE has, {left[1]} that only AFTER has")
    return [(name, found, after[name]) for name, found in before.items() if name in after]


def _compare_emitted(name: str, before: Frozen, after: Frozen) -> bool:
    nothing: Frozen = {"code": "", "sites": []}
    files = sorted(before.keys() | after.keys())
    pairs = {file: (before.get(file, nothing), after.get(file, nothing)) for file in files}
    print(f"emitted, {name}: {len(files)} modules with sites; by code: {_by_code(before)}")
    _show("have other code", [file for file, (old, new) in pairs.items() if old["code"] != new["code"]])
    decisions, texts = [], []
    for file, (old, new) in pairs.items():
        was, now = ({_key(site): site for site in each["sites"]} for each in (old, new))
        for key in sorted(was.keys() | now.keys()):
            one, other = was.get(key), now.get(key)
            if one is None or other is None or one[3] != other[3]:
                decisions.append(f"{file}:{key[2]} [{key[0]}] {key[1]}: {_outcome(one)} -> {_outcome(other)}")
            elif one[4] != other[4]:
                texts.append(f"{file}:{key[2]} [{key[0]}]\n    - {one[4]!r:.300}\n    + {other[4]!r:.300}")
    _show("sites have another outcome", decisions)
    _show("sites are mended in other words", texts)
    return bool(decisions)


def _key(site: list[Any]) -> tuple[Any, ...]:
    return tuple(site[:3])


def _outcome(site: list[Any] | None) -> str:
    return "no site" if site is None else site[3] or "mended"


def _by_code(files: Frozen) -> str:
    counts = Counter((site[0], _outcome(site)) for each in files.values() for site in each["sites"])
    return ", ".join(f"{rule} {code} {count}" for (rule, code), count in sorted(counts.items())) or "none"


def _compare_decided(name: str, before: Frozen, after: Frozen) -> bool:
    pairs = _common(before, after)
    differ, ratios = [], []
    for program, old, new in pairs:
        differ += [f"{program}: {text}" for text in _differences(old, new)]
        seconds = [sum(run["seconds"] for run in each.get("runs", ())) for each in (old, new)]
        if min(seconds) > 0:
            ratios.append(seconds[1] / seconds[0])
    print(f"decided, {name}: {len(pairs)} programs")
    for word, each in (("BEFORE", before), ("AFTER", after)):
        print(f"  {word}: {_totals({program: each[program] for program, *_ in pairs})}")
    if len(ratios) > 1:
        low, middle, high = statistics.quantiles(ratios, n=4)
        print(f"  seconds, AFTER to BEFORE: median {middle:.3f}, quartiles {low:.3f} to {high:.3f}")
    _show("differences", differ)
    return bool(differ)


def _differences(old: Frozen, new: Frozen) -> Iterator[str]:
    for what in ("died", "left", "not_relied_on"):
        if old.get(what) != new.get(what):
            yield f"{what}: {_changed(old.get(what), new.get(what))}"
    runs = old.get("runs", []), new.get("runs", [])
    if len(runs[0]) != len(runs[1]):
        yield f"runs: {len(runs[0])} -> {len(runs[1])}"
    for number, (was, now) in enumerate(zip(*runs, strict=False)):
        for what in _DECIDED:
            if was[what] != now[what]:
                yield f"{what}{f' of run {number}' if number else ''}: {_changed(was[what], now[what])}"


def _changed(old: Any, new: Any) -> str:
    """What a list has no more, and what is new in it; both values, where they are none."""
    if not isinstance(old, list) or not isinstance(new, list) or not all(isinstance(one, (str, list)) for one in old):
        return f"{old} -> {new}"
    was, now = (Counter(map(json.dumps, each)) for each in (old, new))
    return f"-{list((was - now).elements())} +{list((now - was).elements())}"


def _totals(programs: Frozen) -> str:
    """How often frames were attempted, and how long Dynamo took, in all."""
    runs = [run for each in programs.values() for run in each.get("runs", ())]
    attempts = [count for run in runs for _, count in run["frames"]] or [0]
    graphs, breaks = sum(run["graphs"][-1] for run in runs), sum(sum(run["breaks"].values()) for run in runs)
    seconds, left = sum(run["seconds"] for run in runs), sum(len(each.get("left", ())) for each in programs.values())
    return (
        f"{graphs} graphs, {breaks} breaks, {len(attempts)} frames compiled, attempts a frame: median "
        f"{statistics.median(attempts):g}, mean {statistics.mean(attempts):.2f}, most {max(attempts)}; {left} sites "
        f"left while tracing; {seconds:.1f} s of Dynamo; {sum('died' in each for each in programs.values())} died"
    )


def _show(what: str, lines: list[str]) -> None:
    if lines:
        print(f"  {len(lines)} {what}", *lines[:_SHOWN], sep="\n    ")
        print("    ..." if len(lines) > _SHOWN else "", end="\n" if len(lines) > _SHOWN else "")


def _read(path: Path, renamed: Mapping[str, str]) -> Frozen:
    text = path.read_text(encoding="utf-8")
    for old, new in renamed.items():
        text = re.sub(rf"(?<!\w){re.escape(old)}(?!\w)", new, text)
    frozen: Frozen = json.loads(text)
    return frozen


def main() -> int:
    about, _, details = (__doc__ or "").partition("\n")
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m bench.frozen", description=about + details, formatter_class=form)
    names = lambda text: [name for name in text.split(",") if name]  # noqa: E731
    folder = lambda text: Path(text).resolve()  # noqa: E731
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--parts", type=names, default=_PARTS, help="of emitted, rows and trained")
    parser.add_argument("--everyday", type=folder, help="a folder with the package `everyday`")
    parser.add_argument("--cases", type=folder, help="a folder that bench.frozen_calls has recorded")
    parser.add_argument("--census", type=folder, help="the folder of census.py")
    parser.add_argument("--only", type=names, default=[], help="these programs alone, by names or globs")
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--renamed", type=names, default=[], metavar="OLD=NEW,...", help="words of BEFORE")
    given = parser.parse_args()
    if given.compare:
        before, after = given.files
        renamed = dict(pair.split("=") for pair in given.renamed)
        return 1 if compare(_read(before, renamed), _read(after, {})) else 0
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of a set is in the code that is made of it
        os.execve(sys.executable, sys.orig_argv, {**os.environ, "PYTHONHASHSEED": "0"})
    given.files[0].write_text(json.dumps(freeze(given)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
