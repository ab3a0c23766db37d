"""The test kit: tools that do to a cloud what its own APIs cannot. `kit.Kit` combines all of them for one cloud."""
