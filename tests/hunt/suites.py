"""The tests that ship with a library, under the hook: ``python -m tests.hunt.suites MODULES FOLDER TEST [TEST ...]``.

MODULES is what is mended (``einops``), FOLDER where the library's tests lie (a checkout of it), TEST what pytest is given
there.  They are run without the hook and with it, every candidate mended, and compared test by test.

``--every`` takes every test, and whatever else could be of a tensor, for a candidate; so Python's own modules can be
mended, which FOLDER ``Lib/test`` has the tests of.

Exit status: 0 if every test ends as it does without the hook.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

HERE = Path(__file__).parent


def run(folder: Path, tests: Sequence[str], out: Path, plugins: Sequence[str] = (), **variables: str) -> dict[str, str]:
    """How each test ended: "passed", or the kind of its end and the first line of why."""
    kept = {key: text for key, text in os.environ.items() if not key.startswith("GRAPHMEND")}
    env = {**kept, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(HERE.parent), **variables}
    loaded = [f"-phunt.{plugin}" for plugin in plugins]
    options = [*loaded, "-q", "-pno:cacheprovider", "-pno:randomly", f"--junit-xml={out}", "--tb=line"]
    subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests], cwd=folder, env=env, check=False, stdout=subprocess.DEVNULL
    )
    found = {}
    for case in ElementTree.parse(out).iter("testcase"):
        ended = next((child for child in case if child.tag in ("failure", "error", "skipped")), None)
        why = "" if ended is None else (ended.get("message") or "").partition("\n")[0]
        why = re.sub(r"/tmp/\w+|0x[0-9a-f]+", "...", why)
        name = f"{case.get('classname')}.{case.get('name')}"
        found[name] = "passed" if ended is None else f"{ended.tag}: {why}"
    return found


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.hunt.suites", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("modules")
    parser.add_argument("folder", type=Path)
    parser.add_argument("tests", nargs="+")
    parser.add_argument("--every", action="store_true", help="take every test for one of a tensor")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        start = time.monotonic()
        stock = run(given.folder, given.tests, work / "stock.xml")
        middle = time.monotonic()
        hook = {
            "SUITES_MODULES" if given.every else "GRAPHMEND_MODULES": given.modules,
            "GRAPHMEND_CACHE_DIR": str(work / "cache"),
            "GRAPHMEND_REPORT": str(work / "report.json"),
        }
        mended = run(given.folder, given.tests, work / "mended.xml", ["every_candidate"] * given.every, **hook)
        end = time.monotonic()
        modules = json.loads((work / "report.json").read_text(encoding="utf-8"))["modules"]
    sites = Counter(site["outcome"] for module in modules for site in module["sites"])
    different = [test for test in {**stock, **mended} if stock.get(test) != mended.get(test)]
    for test in different:
        print(f"{test}\n    without: {stock.get(test)}\n    with:    {mended.get(test)}")
    ends = Counter(end.partition(":")[0] for end in stock.values())
    print(
        f"{given.modules}: {len(stock)} tests ({', '.join(f'{count} {kind}' for kind, count in sorted(ends.items()))}), "
        f"{dict(sites)} sites; {len(different)} end otherwise with the hook; "
        f"{middle - start:.0f} s without, {end - middle:.0f} s with it"
    )
    return 1 if different or not stock else 0


if __name__ == "__main__":
    sys.exit(main())
