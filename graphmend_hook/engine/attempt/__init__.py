"""The attempts of Dynamo at a frame: what is known of them, and when the next one has to do with less."""
