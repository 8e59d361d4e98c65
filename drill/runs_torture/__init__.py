"""Do runs keep their word while executors, servers and messengers are killed and stopped? On many queues at once."""
