"""Does the queue keep its word while its parts are killed? Each of many jobs is submitted twice meanwhile."""
