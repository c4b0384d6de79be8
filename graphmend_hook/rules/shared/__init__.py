"""What rules share: tests, sides of a branch, messages."""
