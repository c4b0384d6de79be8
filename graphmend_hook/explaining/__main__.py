"""``python -m graphmend_hook.explain OUT [options] program``: one run of `graphmend explain`, observed."""

import sys

if __name__ == "__main__":
    if not (getattr(sys.flags, "safe_path", False) or sys.flags.isolated):
        del sys.path[:1]  # as in `graphmend_hook.__main__`
    from graphmend_hook.cli import run_main
    from graphmend_hook.explaining.observe import start

    start(sys.argv[1])
    sys.exit(run_main(sys.argv[2:], "graphmend explain"))
