"""Does every part of the contract hold, on the real parts wherever they can run?"""
