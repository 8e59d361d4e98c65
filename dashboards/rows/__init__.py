"""What stands on the overview? One row a file, in the order in which a person asks."""
