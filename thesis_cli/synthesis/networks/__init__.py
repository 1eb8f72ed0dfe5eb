"""Networks that guide searches, without PyTorch: their weights and their predictions (Thesis sections
5.4.3, 5.5.3 and 5.7, appendix D.3).

`weights.py` reads and writes files of weights. Networks that predict which functions and lambdas a
program uses: `feed_forward.py` and `gru.py`. One that writes programs: `program_decoder.py`. One that
predicts the next line from the values so far: `next_line.py` (features in `relation_kernels.py`).
`network_guide.py` makes guides of them.
"""
