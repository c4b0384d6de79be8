"""What the start of a process costs with this package: ``python -m bench.startup [CHECKOUT ...] [--runs N]``.

Fresh processes that do nothing else, in turn: plain python; a `sitecustomize` with ``GRAPHMEND_MODULES`` unset;
``import graphmend_hook`` with it unset, and with it set.  The last for each CHECKOUT too (another state).
Printed are medians of milliseconds beyond plain python, of processor time and of the clock.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from pathlib import Path

from .arms import ROOT
from .processes import Arm

_IMPORT = ["-c", "import graphmend_hook"]


def arms(checkouts: list[Path], folder: Path) -> list[Arm]:
    """Plain python, and then the others."""
    (folder / "sitecustomize.py").write_text(
        "import os\nif os.environ.get('GRAPHMEND_MODULES'):\n    import graphmend_hook\n", encoding="utf-8"
    )
    own = {"PYTHONPATH": str(ROOT)}
    found = [
        Arm("plain python", ["-c", "pass"], own),
        Arm("sitecustomize, unset", ["-c", "pass"], {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}),
        Arm("import, unset", _IMPORT, own),
    ]
    for checkout in (ROOT, *checkouts):
        mending = {"PYTHONPATH": str(checkout), "GRAPHMEND_MODULES": "transformers"}
        cached = {**mending, "GRAPHMEND_CACHE_DIR": str(folder / "cache")}
        found.append(Arm(f"import, set, {checkout.name}", _IMPORT, mending))
        found.append(Arm(f"import, set, cache directory set, {checkout.name}", _IMPORT, cached))
    return found


def beyond(times: list[float], plain: list[float]) -> float:
    """The median of the milliseconds by which they are more than those of their neighbours."""
    return 1000 * statistics.median(mine - other for mine, other in zip(times, plain, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkouts", nargs="*", type=Path, metavar="CHECKOUT")
    parser.add_argument("--runs", type=int, default=20)
    options = parser.parse_args()
    checkouts = [checkout.resolve() for checkout in options.checkouts]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # -c finds modules in the current directory first
        measured = arms(checkouts, Path(folder))
        for _ in range(options.runs + 1):
            for arm in measured:
                arm.run()
    plain = measured[0]
    print("milliseconds beyond plain python           processor   clock")
    for arm in measured:  # the first run fills the caches of python and of the machine
        processor, clock = beyond(arm.processor[1:], plain.processor[1:]), beyond(arm.seconds[1:], plain.seconds[1:])
        print(f"{arm.name:45}{processor:7.2f} {clock:7.2f}")


if __name__ == "__main__":
    main()
