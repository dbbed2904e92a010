"""The driver of bench/run: tunes, measures kernels and peers in turns, and reports."""
