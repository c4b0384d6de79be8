"""The door to the tracer: how traced code asks, what it may ask, and what Dynamo does."""
