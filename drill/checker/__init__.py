"""Was every promise kept? Judged from the logs of the callers and of the provider alone.

This package knows the lines of those logs and nothing of the queue: it imports no other part, no store and no Redis, so
what it says does not hang on the code it judges.
"""
