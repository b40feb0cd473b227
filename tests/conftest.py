"""What all tests share: examples of property tests are drawn the same way every time."""

from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")
