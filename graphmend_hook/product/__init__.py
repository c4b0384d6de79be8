"""What tells people: the commands, the report, `graphmend explain` and `graphmend doctor`."""
