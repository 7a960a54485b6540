"""All tests: the same examples at every run, and no deadline, since CI machines are slow at times."""

from hypothesis import settings

settings.register_profile("project", deadline=None, derandomize=True)
settings.load_profile("project")
