"""[Trap]: statements that raise where tensor data says so."""
