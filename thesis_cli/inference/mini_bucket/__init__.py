"""Bounds on ln Z from both sides by elimination in tables of a limited size.

Start with `mini_bucket.py`. `plan.py` cuts elimination into mini-buckets, `passes.py` tightens the
bound, `sampler.py` draws from it, `sampling.py` estimates ln Z by the draws and `betting.py` bounds it;
`junction_graph.py` is belief propagation on the same clusters. May import `external`.
"""
