"""Runs the programs that it is given, one after the other, and prints a mark in front of what each prints."""

from __future__ import annotations

import runpy
import sys

if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(f"== {name}")
        try:
            runpy.run_path(name, run_name="__main__")
        except RuntimeError as error:  # of Dynamo: with fullgraph=True a break is an error
            print(f"{type(error).__name__}")
