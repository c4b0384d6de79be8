"""Gradients: [Grad], for tensors that are told to require one."""
