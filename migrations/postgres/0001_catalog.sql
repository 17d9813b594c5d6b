-- Names compare byte for byte (collate "C"). Times are milliseconds since the epoch.

create table warehouses (
    id uuid not null primary key,
    name text collate "C" not null unique,
    location text collate "C" not null
);

create table namespaces (
    id uuid not null primary key,
    warehouse_id uuid not null references warehouses (id),
    parent_id uuid references namespaces (id),
    name text collate "C" not null,
    -- SHA-256 in hex of all levels joined by 0x1F: a path resolves in one lookup, however long it is.
    path_key text collate "C" not null,
    -- A JSON object of strings.
    properties text not null,
    unique (warehouse_id, path_key)
);
create index namespaces_by_parent on namespaces (warehouse_id, parent_id, name);
create index namespaces_parent on namespaces (parent_id);

create table tables (
    id uuid not null primary key,
    namespace_id uuid not null references namespaces (id),
    name text collate "C" not null,
    kind text collate "C" not null check (kind in ('table', 'view')),
    uuid uuid not null,
    format_version smallint not null,
    location text collate "C" not null,
    -- The location with its scheme unified and a slash at the end: no key is a prefix of another.
    location_key text collate "C" not null unique,
    metadata_location text collate "C" not null,
    previous_location text collate "C",
    revision bigint not null,
    unique (namespace_id, name)
) with (fillfactor = 70); -- a commit updates no indexed column: room on the page keeps it there

-- Every metadata file a pointer ever named. Rows outlive their table until its files are dealt with.
create table table_commits (
    table_id uuid not null,
    revision bigint not null,
    metadata_location text collate "C" not null,
    committed_at_ms bigint not null,
    primary key (table_id, revision),
    unique (metadata_location, table_id)
);

create table access_keys (
    id text collate "C" not null primary key,
    principal text collate "C" not null,
    sealed_secret bytea not null,
    created_at_ms bigint not null,
    expires_at_ms bigint
);

create table jobs (
    id uuid not null primary key,
    kind text collate "C" not null,
    payload text not null,
    -- When somebody may take it: not before this, after a lease's end, or at the next attempt.
    due_at_ms bigint not null,
    attempts integer not null,
    fence bigint not null,
    holder uuid,
    last_error text
);
create index jobs_due on jobs (due_at_ms, id);
