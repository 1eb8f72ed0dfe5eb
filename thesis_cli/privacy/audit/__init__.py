"""Whether releases keep their guarantee: `runs.py` repeats a release on worst pairs of tables
(`pairs.py`), `scores.py` tells them apart, `bounds.py` turns that into a bound on epsilon;
`stages.py` measures the noise of every vector and choice, of the releases in `cases.py`.
"""
