"""Branches on tensor data: [Where], and the sides of a branch, which [Trap] has as well."""
