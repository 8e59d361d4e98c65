"""What does a port ask of whoever connects, and how does it follow the files that say so?"""
