"""What the tool did in this process, for people and for machines."""
