"""Delivers what was deferred: a bytecode hook on Dynamo's output, and the sink that makes the calls."""
