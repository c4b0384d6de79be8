"""[Grad]: tensors that are told to require a gradient."""
