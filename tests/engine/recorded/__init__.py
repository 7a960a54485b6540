"""Exchanges with llama-server: the requests, the script that records them, and how answers are compared."""
