//! Our own HTTP API under `/api/v1`: access keys, warehouses, everything the Iceberg protocol has no route for.
