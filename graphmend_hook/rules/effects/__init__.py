"""Effects: [Defer], for calls that print, warn, log or draw."""
