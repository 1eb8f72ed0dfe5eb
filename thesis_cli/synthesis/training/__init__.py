"""Training of the networks that guide searches; needs PyTorch (Thesis sections 5.4.3 and 5.4.5,
appendices D.3 and D.5).

`trainer.py` trains any learner, with checkpoints; `models.py` lists the learners,
one for each kind of network. `corpora.py` has the programs to train on and those that are held out,
and needs no PyTorch.
"""
