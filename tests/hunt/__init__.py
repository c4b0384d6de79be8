"""The hunt for programs that do something else when they are mended: ``python -m tests.hunt --help``."""
