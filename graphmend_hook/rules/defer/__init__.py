"""[Defer]: calls that print, warn, log or draw."""
