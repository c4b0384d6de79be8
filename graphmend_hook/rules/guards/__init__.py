"""Guards: [Trap], for statements that raise where tensor data says so."""
