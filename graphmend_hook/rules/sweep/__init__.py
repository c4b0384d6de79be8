"""[Sweep]: loops over the hits in a mask."""
