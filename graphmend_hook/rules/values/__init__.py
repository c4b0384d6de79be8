"""Numbers and shapes that tensor data decides: [Value] and [Sweep]."""
