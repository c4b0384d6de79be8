"""The one adapter to torch's private API: nothing else in this package imports `torch._dynamo` or its kin.

`question` is the door by which traced code asks the tracer; `tracer` and `variables` say what it may ask; `compilation`
holds what is known of a frame; `delivery` delivers, after the graph, what was left for it.
"""
