"""The framework: declare operations, serve them at every version.  It knows no resource."""
