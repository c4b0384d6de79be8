"""What the user may set: the settings, their syntax, and the options of the commands."""
