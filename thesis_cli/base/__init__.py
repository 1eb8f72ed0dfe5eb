"""Shared ground of all packages: array types, progress, threads, files, locks, errors.

It imports nothing else of this package. Start with `errors.py` (what a wrong input raises),
`arrays.py` (types of arrays) and `progress.py` (how long work reports); `files.py` writes files
whole or not at all; `npy.py` reads arrays, whole or damaged.
"""

VERSION = "0.1.0"
"""Version of the package."""
