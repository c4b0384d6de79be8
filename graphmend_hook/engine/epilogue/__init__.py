"""What runs behind a graph: the effects that waited for its end, and, where it failed, the frame as it was written."""
