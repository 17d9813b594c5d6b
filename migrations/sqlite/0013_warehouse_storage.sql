-- Where a warehouse's objects are: JSON without secrets; null: in the embedded store of the server itself.
alter table warehouses add column storage text;
-- The secret that goes with it, sealed under the master key.
alter table warehouses add column sealed_secret blob;
