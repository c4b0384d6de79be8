"""One arm of the survey of transformers' model types, each compiled once: ``python -m bench.survey FOLDER OUT.jsonl``.

FOLDER has the survey's `census.py`, which builds a small model of each type, with the hook if ``GRAPHMEND_MODULES`` is
set.  What it finds out of a model is a line of OUT; a model that OUT has already is left out.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path
from typing import Any

# As many arguments of the survey's own as its functions read.
_GIVEN = {"eager_only": False, "bf16": False, "half_all": False, "base": False, "verbose": False, "tb": False}
_LIMITS = {"timeout": 120.0, "build_budget": 12.0}


def survey(census: Any, names: list[str], out: Path, train: bool) -> None:
    """Add a line for each of the model types `names` to `out`."""
    given = argparse.Namespace(**_GIVEN, **_LIMITS, train=train)
    for name in names:
        line = census.run_one(name, given)
        with out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print(f"{name}: {line.get('breaks')} breaks, {line['wall']} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser("python -m bench.survey", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("folder", type=Path, help="where census.py is")
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", help="the model types, with commas between them")
    parser.add_argument("--train", action="store_true", help="three training steps of each instead of a forward pass")
    given = parser.parse_args()
    sys.path.insert(0, str(given.folder.resolve()))
    census = importlib.import_module("census")  # which imports the hook first
    names = given.only.split(",") if given.only else census.order()[0]
    done = [json.loads(line)["name"] for line in given.out.open(encoding="utf-8")] if given.out.exists() else []
    # What every child needs is loaded once, before they are forked.
    importlib.import_module("torch._dynamo.convert_frame")
    importlib.import_module("transformers.models.t5.modeling_t5")
    survey(census, [name for name in names if name not in done], given.out, given.train)


if __name__ == "__main__":
    main()
