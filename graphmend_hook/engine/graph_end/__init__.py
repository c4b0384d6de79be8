"""What is judged and changed at the end of a graph; `order` has all of it, in the order in which it runs."""
