"""``python -m graphmend_hook [options] (script.py | -m module | -c code) [arguments ...]``, or a command."""

import sys

if __name__ == "__main__":
    if not (getattr(sys.flags, "safe_path", False) or sys.flags.isolated):
        del sys.path[:1]  # the current directory, which -m put there for us: a module in it would shadow our imports
    from graphmend_hook.cli import module_main

    status = module_main()
    if status:  # under -i python would show a SystemExit of 0
        sys.exit(status)
