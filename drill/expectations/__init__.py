"""What must have been seen of a drill in the end? Jobs, gate, runs, alerts, workers and the load, a file each."""
