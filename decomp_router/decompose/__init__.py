"""Prompt to plan: pure, no network, no clock."""
