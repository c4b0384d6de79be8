"""Numbers that the data decides: captured as symbols, and what is assumed and asserted of them."""
