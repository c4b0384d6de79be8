"""Scripts of users, run in processes of their own, that print what they found as JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any


def printed(*arguments: str, **variables: str) -> dict[str, Any]:
    """What ``python ARGUMENTS`` prints in its last line, with no setting of the hook's but those of `variables`."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("GRAPHMEND_")}
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**environment, "OMP_NUM_THREADS": "1", **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
