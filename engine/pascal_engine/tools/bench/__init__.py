"""`pascal-engine bench`: tokens a second of prefill and decode."""
