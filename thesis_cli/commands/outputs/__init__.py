"""Tables and files that several commands write."""
