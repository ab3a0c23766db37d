"""The framework: declares operations and serves them at every version. It knows no resource."""
