"""Numbered schema changes, applied in order by ltm.open()."""
