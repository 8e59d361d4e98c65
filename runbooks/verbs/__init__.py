"""What can a step do, what would it do exactly, and what must hold before the run goes on?"""
