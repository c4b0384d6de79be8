"""Numbers and shapes that tensor data decides: [Value], [Sweep] and [Mask]."""
