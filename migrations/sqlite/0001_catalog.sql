-- Names compare byte for byte (BINARY is SQLite's default). Times are milliseconds since the epoch, ids 16 bytes.

create table warehouses (
    id blob not null primary key,
    name text not null unique,
    location text not null
);

create table namespaces (
    id blob not null primary key,
    warehouse_id blob not null references warehouses (id),
    parent_id blob references namespaces (id),
    name text not null,
    -- SHA-256 in hex of all levels joined by 0x1F: a path resolves in one lookup, however long it is.
    path_key text not null,
    -- A JSON object of strings.
    properties text not null,
    unique (warehouse_id, path_key)
);
create index namespaces_by_parent on namespaces (warehouse_id, parent_id, name);
create index namespaces_parent on namespaces (parent_id);

create table tables (
    id blob not null primary key,
    namespace_id blob not null references namespaces (id),
    name text not null,
    kind text not null check (kind in ('table', 'view')),
    uuid blob not null,
    format_version smallint not null,
    location text not null,
    -- The location with its scheme unified and a slash at the end: no key is a prefix of another.
    location_key text not null unique,
    metadata_location text not null,
    previous_location text,
    revision bigint not null,
    unique (namespace_id, name)
);

-- Every metadata file a pointer ever named. Rows outlive their table until its files are dealt with.
create table table_commits (
    table_id blob not null,
    revision bigint not null,
    metadata_location text not null,
    committed_at_ms bigint not null,
    primary key (table_id, revision),
    unique (metadata_location, table_id)
) without rowid;

create table access_keys (
    id text not null primary key,
    principal text not null,
    sealed_secret blob not null,
    created_at_ms bigint not null,
    expires_at_ms bigint
);

create table jobs (
    id blob not null primary key,
    kind text not null,
    payload text not null,
    -- When somebody may take it: not before this, after a lease's end, or at the next attempt.
    due_at_ms bigint not null,
    attempts integer not null,
    fence bigint not null,
    holder blob,
    last_error text
);
create index jobs_due on jobs (due_at_ms, id);
