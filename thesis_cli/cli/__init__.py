"""The command line: parse, validate, call, print."""
