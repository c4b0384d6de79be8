"""``python -m graphmend_hook.product.explain program``: one run of `graphmend explain`, observed."""

import sys

if __name__ == "__main__":
    if not (getattr(sys.flags, "safe_path", False) or sys.flags.isolated):
        del sys.path[:1]  # as in `graphmend_hook.__main__`
    from graphmend_hook.cli import run_main
    from graphmend_hook.product.explain import following

    following.start(is_first=True)
    sys.exit(run_main(sys.argv[1:], "graphmend explain"))
