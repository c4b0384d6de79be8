"""Cases of other libraries, without the hook and with it: ``python -m bench.ecosystem``; ``--page`` writes the page.

The packages are those of ``constraints/ecosystem.txt``; ``nox -s ecosystem`` installs them and does both.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from . import MODULES

ROOT = Path(__file__).parents[2]
RESULTS = Path(__file__).with_name("results.json")  # beside the cases: it has no tables of the bench's
PAGE = ROOT / "docs" / "ecosystem.md"
_MOST_CAUSES = 20
Line = dict[str, Any]


def measure(libraries: Sequence[str], only: Sequence[str]) -> list[Line]:
    """What was observed of each case: `off` without the hook, `on` with it."""
    lines: list[Line] = []
    for library in libraries:
        off, on = (_arm(library, hooked, only) for hooked in (False, True))
        lines += [{"library": library, "case": name, "off": off[name], "on": on[name]} for name in off if name in on]
    return lines


def _arm(library: str, hooked: bool, only: Sequence[str]) -> dict[str, Line]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GRAPHMEND")}
    environment |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    if hooked:
        environment["GRAPHMEND_MODULES"] = ",".join(MODULES[library])
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out.jsonl")
        command = [sys.executable, "-m", "bench.ecosystem.arm", library, str(out), *only]
        done = subprocess.run(command, env=environment, cwd=ROOT, check=False, stdout=subprocess.DEVNULL)
        if done.returncode and not out.exists():
            print(f"bench.ecosystem: {library} cannot be imported", file=sys.stderr)
            return {}
        found = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()] if out.exists() else []
    return {line.pop("case"): line for line in found}


def is_broken(seen: Line) -> bool:
    return bool(seen["breaks"]) or not seen["whole"]


def verdicts(line: Line) -> list[str]:
    """What is to be said of a case: died, broken, freed, worse, different."""
    off, on = line["off"], line["on"]
    if "died" in off or "died" in on:
        return ["died"]
    found = ["broken"] if is_broken(off) else []
    found += ["freed"] if is_broken(off) and not is_broken(on) else []
    is_worse = is_broken(on) and (not is_broken(off) or _captures_less(on, off))
    found += ["worse"] if is_worse or _ends_worse(on, off) else []
    different = set(on["differs"]) - set(off["differs"])
    return found + (["different"] if different else [])


def _captures_less(on: Line, off: Line) -> bool:
    """Has the first call fewer operations in its graphs, or as many in more graphs?

    Of what was measured before operations were counted: has it more graphs?
    """
    has_more_graphs: bool = on["graphs"][0] > off["graphs"][0]
    if "operations" not in on or "operations" not in off:
        return has_more_graphs
    operations: int = on["operations"][0] - off["operations"][0]
    return operations < 0 or (operations == 0 and has_more_graphs)


def _ends_worse(on: Line, off: Line) -> bool:
    """Is it compiled anew more often, to more graphs in all, or does the last call run less of it in graphs?

    Of what was measured before that was counted nothing is known.
    """
    late_on, late_off = (arm["graphs"][-1] - arm["graphs"][0] for arm in (on, off))
    if late_on > late_off and on["graphs"][-1] > off["graphs"][-1]:
        return True
    if "ran" not in on or "ran" not in off:
        return False
    ran, runs = on["ran"][-1] - off["ran"][-1], on["runs"][-1] - off["runs"][-1]
    if ran < 0:
        is_whole = on["runs"][-1] and runs <= 0 and not is_broken(on)  # a loop in a graph is one operation
        return not is_whole
    return bool(ran == 0 and runs > 0)


def page(found: dict[str, Any]) -> str:
    """The page of the docs."""
    return "\n".join([*_head(found), *_table(found["lines"]), "", *_left(found["lines"]), "", *_cases(found["lines"])])


def _head(found: dict[str, Any]) -> Iterator[str]:
    yield "# Other libraries"
    yield ""
    yield f"Made by `{found['command']}` and `python -m bench.ecosystem --page`, on torch {found['torch']}, commit"
    calls = max((len(line["on"].get("graphs", ())) for line in found["lines"]), default=0)
    yield f"{found['commit']}. Each case is compiled by `torch.compile` with its default settings, and called {calls}"
    yield "times, with other data of the same shapes."
    yield ""
    yield "*Broken*: Dynamo says that it breaks, or `fullgraph=True` fails. *Worse*: it breaks with the hook alone, or"
    yield "breaks and captures fewer operations in the first call, or as many in more graphs; or it is compiled anew"
    yield "more often, to more graphs in all, or the last call runs fewer operations in graphs, or as many in more."
    yield "*Different*: outputs, exceptions, records, the state of modules or random numbers differ from eager with the"
    yield "hook and not without. *Died*: the case cannot be run here."
    yield ""


def _table(lines: Sequence[Line]) -> Iterator[str]:
    yield "| library | cases | broken | broken with the hook | worse | different | died |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    total: Counter[str] = Counter()
    for library in sorted({line["library"] for line in lines}):
        of_library = [line for line in lines if line["library"] == library]
        counts = Counter(verdict for line in of_library for verdict in verdicts(line)) + Counter(cases=len(of_library))
        total += counts
        yield _row(library, counts)
    yield _row("**all**", total)


def _row(name: str, counts: Counter[str]) -> str:
    left = counts["broken"] - counts["freed"]
    numbers = (counts["cases"], counts["broken"], left, counts["worse"], counts["different"], counts["died"])
    return f"| {name} | " + " | ".join(map(str, numbers)) + " |"


def _left(lines: Sequence[Line]) -> Iterator[str]:
    said = "The commonest first causes with the hook, with a place."
    yield from _section(
        "What still breaks", said, "| cases | PyTorch's number | cause | for example |\n|---:|---|---|---|"
    )
    causes: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        for place, reason, number in line["on"].get("breaks", ())[:1]:
            causes.setdefault((number, reason), []).append(place)
    ordered = sorted(causes.items(), key=lambda item: -len(item[1]))
    for (number, reason), places in ordered[:_MOST_CAUSES]:
        yield f"| {len(places)} | {number} | {reason.replace('|', '/')} | `{places[0]}` |"


def _cases(lines: Sequence[Line]) -> Iterator[str]:
    said = "Graphs after the first and after the last call; in parentheses, how many the last one runs."
    yield from _section("Cases that break", said, "| case | without | with the hook | |\n|---|---:|---:|---|")
    for line in lines:
        said = verdicts(line)
        if said:
            graphs = [_graphs(line[arm]) for arm in ("off", "on")]
            words = ", ".join(verdict for verdict in said if verdict != "broken") or "left"
            yield f"| {line['library']}: {line['case']} | {graphs[0]} | {graphs[1]} | {words} |"


def _section(title: str, said: str, head: str) -> Iterator[str]:
    """What stands above the lines of a table."""
    yield from (f"## {title}", "", said, "", head)


def _graphs(seen: Line) -> str:
    if "graphs" not in seen:
        return ""
    runs = f" ({seen['runs'][-1]})" if "runs" in seen else ""
    return f"{seen['graphs'][0]} to {seen['graphs'][-1]}{runs}"


def main() -> None:
    parser = argparse.ArgumentParser("python -m bench.ecosystem", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--only", help="these libraries, with commas between them", default=",".join(MODULES))
    parser.add_argument("--cases", help="these cases alone, by parts of their names", default="")
    parser.add_argument("--page", action="store_true", help=f"write {PAGE.name} out of {RESULTS.name}")
    given = parser.parse_args()
    if given.page:
        PAGE.write_text(page(json.loads(RESULTS.read_text(encoding="utf-8"))) + "\n", encoding="utf-8")
        return
    libraries = given.only.split(",")
    unknown = sorted(set(libraries) - set(MODULES))
    if unknown:
        parser.error(f"--only: no cases of {', '.join(unknown)}; there are {', '.join(MODULES)}")
    lines = measure(libraries, [part for part in given.cases.split(",") if part])
    for line in lines:
        print(line["library"], line["case"], *verdicts(line), sep="\t")
    _keep(lines)


def _keep(lines: Sequence[Line]) -> None:
    """Write what was found to the results, beside the cases that are there already."""
    old = json.loads(RESULTS.read_text(encoding="utf-8"))["lines"] if RESULTS.exists() else []
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    found = {
        "command": "nox -s ecosystem",
        "torch": metadata.version("torch"),
        "commit": commit.stdout.strip(),
        "lines": sorted([*(line for line in old if _key(line) not in {*map(_key, lines)}), *lines], key=_key),
    }
    cases = ",\n".join(json.dumps(line) for line in found.pop("lines"))  # a line each: a change can be read
    RESULTS.write_text(f'{json.dumps(found)[:-1]}, "lines": [\n{cases}\n]}}\n', encoding="utf-8")


def _key(line: Line) -> tuple[str, str]:
    return line["library"], line["case"]


if __name__ == "__main__":
    main()
