"""Images to learn denoising from, and what the experiment on it measures."""
