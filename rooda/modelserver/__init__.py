"""A scripted model server: a program of its own, which rooda starts and never imports."""
