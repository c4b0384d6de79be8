"""What the hook costs, as ratios measured in one run: ``python -m bench``."""
