"""When does a recovery run, how far has it come, and what did it do?"""
