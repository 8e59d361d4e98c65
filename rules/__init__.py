"""When should Prometheus and Alertmanager wake somebody, and who?"""
