"""[Value]: numbers and shapes that tensor data decides."""
