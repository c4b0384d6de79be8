"""[Where]: branches on tensor data."""
