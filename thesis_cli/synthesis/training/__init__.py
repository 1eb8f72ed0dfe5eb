"""How the networks that guide searches learn; needs PyTorch
(Thesis sections 5.4.3 and 5.4.5, appendices D.3 and D.5)."""
