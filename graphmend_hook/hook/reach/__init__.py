"""Modules, functions and processes that the finder does not meet: imported or made before the hook, or beside it."""
