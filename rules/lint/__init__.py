"""Is there a rule in these files that can't fire, fires too late, or wakes people for nothing?"""
