"""The test kit: what can be done to a cloud besides asking it. `around.Kit` is all of it, for one cloud."""
