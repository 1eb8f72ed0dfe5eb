"""The programs that the thesis shows, and how fast searches are."""
