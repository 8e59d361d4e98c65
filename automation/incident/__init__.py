"""Tell what happened in one run, for those who were not there: what was seen, decided and done, by whom and why."""
