"""Tell people and their tools what happens: Slack, PagerDuty, GitHub, or any webhook."""
