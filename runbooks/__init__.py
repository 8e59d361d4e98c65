"""What does a recovery consist of, step by step, and is that description sound?"""
