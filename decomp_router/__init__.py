"""The router: sees independent sub-tasks in a prompt and runs them at the same time."""
