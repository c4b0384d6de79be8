"""Which graph breaks each rule frees that no other does: ``python -m bench.worth FOLDER [--measure CENSUS]``.

``--measure`` runs a survey (`bench.survey`: CENSUS, or ``rows`` for those of the tests) on the installed transformers.
It keeps in FOLDER what it finds out about every model without the hook, about those that break with it, and about those
that it frees of breaks without each rule in turn; what is there already is not measured again.  Without ``--measure``
the tables of what FOLDER has are printed.

A break counts as freed by one rule alone if the hook frees it, but not without that rule.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Console

from graphmend_hook.settings.config import RULE_NAMES

from . import arms
from .tables import Table

Breaks = dict[tuple[str, str], int | None]  # by model and what was compiled; None: an error
STOCK, HOOK = "stock", "hook"
MENDED = arms.ARMS["on"]


def breaks_of(file: Path) -> Breaks:
    """The breaks of each model in one arm: of a forward pass, in half precision too, of a training step, of a row."""
    found: Breaks = {}
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        model = json.loads(line)
        for kind in ("fp32", "fp16", "train", "row"):
            if (seen := model.get(kind)) is not None and "breaks" in seen:
                found[model["name"], kind] = None if seen.get("err") else seen["breaks"]
    return found


def freed_alone(stock: Breaks, hook: Breaks, without: Breaks) -> dict[tuple[str, str], int]:
    """The breaks that come back without a rule, where there are any."""
    back = {}
    for what, breaks in without.items():
        before, after = stock.get(what), hook.get(what)
        if before and after is not None and breaks is not None and after < min(before, breaks):
            back[what] = min(before, breaks) - after
    return back


def measure(folder: Path, census: str, options: Sequence[str], names: Sequence[str]) -> None:
    """Fill `folder` with the arms that it lacks, of all models or of `names`; `options` are for `bench.survey`."""
    folder.mkdir(parents=True, exist_ok=True)

    def run(arm: str, names: Sequence[str], **environment: str) -> Breaks:
        if names or arm == STOCK:
            chosen = ["--only", ",".join(names)] if names else []
            survey([census, str(folder / f"{arm}.jsonl"), *options, *chosen], environment)
        return breaks_of(folder / f"{arm}.jsonl")

    stock = run(STOCK, names)
    hook = run(HOOK, sorted({name for (name, _), breaks in stock.items() if breaks != 0}), **MENDED)
    freed = (what for what, after in hook.items() if after is not None and (stock.get(what) or 0) > after)
    better = sorted({name for name, _ in freed})
    for rule in RULE_NAMES:
        others = ",".join(name for name in RULE_NAMES if name != rule)
        run(f"without-{rule}", better, GRAPHMEND_RULES=others, **MENDED)


def survey(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """`bench.survey`, under these variables and those of every arm, with caches that begin empty."""
    with tempfile.TemporaryDirectory() as folder:
        env = {**arms.environment("off", Path(folder)), **environment}
        subprocess.run([sys.executable, "-m", "bench.survey", *arguments], env=env, check=True)


def tables(folder: Path) -> Iterator[Table]:
    """Of each rule, what it frees alone; and what all of them free."""
    stock, hook = (breaks_of(folder / f"{arm}.jsonl") for arm in (STOCK, HOOK))
    lines = []
    for file in sorted(folder.glob("without-*.jsonl")):
        back = freed_alone(stock, hook, breaks_of(file))
        whole = _examples(what for what in back if hook[what] == 0)
        lines.append((file.stem.removeprefix("without-"), len({name for name, _ in back}), sum(back.values()), whole))
    both = [what for what, breaks in stock.items() if breaks and hook.get(what) is not None]
    before, after = sum(stock[what] or 0 for what in both), sum(hook[what] or 0 for what in both)
    gone = sum(not hook[what] for what in both)
    below = f"All rules: {gone} of {len(both)} that break are one graph, {before - after} of {before} breaks are gone."
    yield Table(
        f"What each rule frees alone: {folder.name}", ("rule", "models", "breaks", "to one graph"), lines, [below]
    )


def _examples(found: Iterable[tuple[str, str]]) -> str:
    """The first models of those that were found."""
    names = sorted({name for name, _ in found})
    return ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")


def main() -> None:
    parser = argparse.ArgumentParser("python -m bench.worth", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("folder", type=Path, help="where the lines of the survey are kept")
    parser.add_argument("--measure", metavar="CENSUS", help="the folder of census.py, or rows")
    parser.add_argument("--train", action="store_true", help="training steps instead of forward passes")
    parser.add_argument("--only", default="", help="the models, with commas between them")
    given = parser.parse_args()
    if given.measure:
        options = ["--train"] if given.train else []
        measure(given.folder, given.measure, options, list(filter(None, given.only.split(","))))
    for table in tables(given.folder):
        table.show(Console(width=160))


if __name__ == "__main__":
    main()
