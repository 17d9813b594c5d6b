-- A pointer may come back to a file it named before: a table registered again at an earlier version. So a file may stand
-- in one table's history more than once.
alter table table_commits drop constraint table_commits_metadata_location_table_id_key;
create index table_commits_by_file on table_commits (metadata_location, table_id);

-- Reports that engines send of their scans and commits. No foreign keys: they outlive their table, and neither a drop
-- nor a commit ever waits for them.
create table metrics_reports (
    -- UUIDv7 of the moment it came in: the order of ids is the order of time.
    id uuid not null primary key,
    warehouse_id uuid not null,
    table_id uuid not null,
    kind text collate "C" not null check (kind in ('scan', 'commit')),
    received_at_ms bigint not null,
    principal text collate "C" not null,
    -- The table's name at that moment; the namespace as a JSON array of its levels.
    namespace text collate "C" not null,
    name text collate "C" not null,
    -- JSON of a bounded length.
    report text collate "C" not null
);
create index metrics_reports_by_warehouse on metrics_reports (warehouse_id, kind, id);
create index metrics_reports_by_table on metrics_reports (table_id, kind, id);

create table functions (
    id uuid not null primary key,
    namespace_id uuid not null references namespaces (id),
    name text collate "C" not null,
    function_uuid uuid not null,
    -- The document as it was sent. JSON.
    metadata text collate "C" not null,
    unique (namespace_id, name)
);
