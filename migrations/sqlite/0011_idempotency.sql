-- Answers to requests that are to be answered once, by the key their client chose; forgotten after a while.
create table idempotency_keys (
    principal text not null,
    id blob not null,
    request_sha256 blob not null,
    status bigint not null,
    -- The metadata file that the answer is about.
    location text,
    -- What else is needed to give it again: JSON.
    detail text,
    expires_at_ms bigint not null,
    primary key (principal, id)
) without rowid;
create index idempotency_keys_expiry on idempotency_keys (expires_at_ms);
