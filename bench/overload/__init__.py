"""What is left of a queue that is asked for more than it can do: in-time work, broken promises, and who is served?

Real Redis, real producers and real workers; only the provider is simulated, by time that passes. Every duration of the
drill's mix is divided by ten: the deadlines, the service times and the contract's timings.
"""
