"""What is judged and changed at the end of a graph."""
