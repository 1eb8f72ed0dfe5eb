"""The networks that guide searches, without PyTorch: their weights and their predictions
(Thesis section 5.4.3, appendix D.3)."""
