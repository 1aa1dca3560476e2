"""Where this package stands in for others."""
