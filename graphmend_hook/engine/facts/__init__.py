"""What operations do, and which memory they touch."""
