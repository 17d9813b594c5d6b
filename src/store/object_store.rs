//! `object_store::ObjectStore` over one bucket of the embedded store.
