"""The import hook: finder, loader and cache.  Knows importlib; knows no rule by name and no torch."""
