"""The hunt for programs that do something else when they are mended: ``python -m tests.hunt --help``.

Its modules, and what they share with the tests, are imported from the folders of the tests, as pytest does.  Torch
is given one thread: tensors are too small here for more.
"""

import os
import sys
from pathlib import Path

_HERE = Path(__file__).parent
sys.path[:0] = [
    folder for folder in map(str, (_HERE.parent, _HERE.parent / "compiled", _HERE)) if folder not in sys.path
]
os.environ.setdefault("OMP_NUM_THREADS", "1")
