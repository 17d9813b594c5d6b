-- A pointer may come back to a file it named before: a table registered again at an earlier version. So a file may stand
-- in one table's history more than once. SQLite cannot drop a constraint: the table is made anew.
create table table_commits_0012 (
    table_id blob not null,
    revision bigint not null,
    metadata_location text not null,
    committed_at_ms bigint not null,
    primary key (table_id, revision)
) without rowid;
insert into table_commits_0012 (table_id, revision, metadata_location, committed_at_ms)
select table_id, revision, metadata_location, committed_at_ms from table_commits;
drop table table_commits;
alter table table_commits_0012 rename to table_commits;
create index table_commits_by_file on table_commits (metadata_location, table_id);

-- Reports that engines send of their scans and commits. No foreign keys: they outlive their table, and neither a drop
-- nor a commit ever waits for them.
create table metrics_reports (
    -- UUIDv7 of the moment it came in: the order of ids is the order of time.
    id blob not null primary key,
    warehouse_id blob not null,
    table_id blob not null,
    kind text not null check (kind in ('scan', 'commit')),
    received_at_ms bigint not null,
    principal text not null,
    -- The table's name at that moment; the namespace as a JSON array of its levels.
    namespace text not null,
    name text not null,
    -- JSON of a bounded length.
    report text not null
);
create index metrics_reports_by_warehouse on metrics_reports (warehouse_id, kind, id);
create index metrics_reports_by_table on metrics_reports (table_id, kind, id);

create table functions (
    id blob not null primary key,
    namespace_id blob not null references namespaces (id),
    name text not null,
    function_uuid blob not null,
    -- The document as it was sent. JSON.
    metadata text not null,
    unique (namespace_id, name)
);
