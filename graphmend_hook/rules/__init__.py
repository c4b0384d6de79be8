"""The rules, a folder a family: what each makes of a source, and, in files named `traced_`, what Dynamo inlines of it.

This package imports nothing: what is traced must not load what rewrites, nor the other way round.
"""
