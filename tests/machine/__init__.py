"""Does the queue keep its invariants under any order of commands, crashes, repeats and races, on a real server?"""
