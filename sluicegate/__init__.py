"""May this job be admitted, must the queue be drained, or is it safe to reopen?

This package is the contract that producers and workers import, and what every part of the application shares.
"""

__version__ = "0.1.0"
