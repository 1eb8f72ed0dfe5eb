"""The networks that guide searches, without PyTorch: their weights and their predictions (Thesis
sections 5.4.3, 5.5.3 and 5.7, appendix D.3).

`weights.py` reads and writes files of weights. Networks that predict which functions and lambdas a
program uses: `feed_forward.py` and `gru.py`, which `network_guide.py` makes guides of. One that
writes programs: `program_decoder.py` (tokens in `program_tokens.py`). One that predicts the next
line from the values so far: `next_line.py` (features in `relation_kernels.py`), of which
`line_guide.py` makes a guide of the search `guided`.
"""
