"""When would the alerts have fired over recorded history, how early, and how often for nothing?"""
