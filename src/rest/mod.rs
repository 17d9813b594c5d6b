//! The Iceberg REST protocol: one file a resource, handlers named after the specification's operations.
