"""``python -m graphmend_hook [options] (script.py | -m module | -c code) [arguments ...]``"""

import sys

from .cli import module_main

if __name__ == "__main__":
    sys.exit(module_main())
