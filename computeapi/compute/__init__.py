"""The domain of compute: servers and their life cycle, flavors, quotas, scheduling. No HTTP, no versions."""
