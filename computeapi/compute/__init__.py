"""What the cloud does: servers and their life, flavors, quotas, scheduling.  No HTTP, no versions."""
