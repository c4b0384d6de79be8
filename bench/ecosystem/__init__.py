"""Cases of other libraries than transformers, without the hook and with it: ``python -m bench.ecosystem``."""
