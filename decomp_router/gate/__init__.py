"""A request, its plan and the present load to a decision: pure, no network, no clock."""
