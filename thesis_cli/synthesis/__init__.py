"""Programs from input-output examples: a small language and the searches over it (Thesis chapter 5)."""
