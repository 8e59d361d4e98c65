"""Does the whole loop hold on real parts, on this machine, now?"""
