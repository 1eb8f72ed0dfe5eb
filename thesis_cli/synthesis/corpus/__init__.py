"""Corpora: distinct random programs, each with examples.

Start with `corpus_maker.py`. `corpus.py` holds a corpus as arrays, `corpus_file.py` and
`corpus_shards.py` on disk; `behaviours.py` and `exact_behaviours.py` decide which programs do the same;
`balance.py` draws from other distributions than the uniform one; `shares.py` counts
what programs use. May import `language`.
"""
