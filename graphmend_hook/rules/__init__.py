"""The rules, a folder each: what it makes of a source (`rewrite`), and what Dynamo inlines of it (`traced`).

This package imports nothing: what is traced must not load what rewrites, nor the other way round.
"""
