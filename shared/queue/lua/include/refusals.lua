-- What is remembered of the refused files of a partition: opaque text, and the number of such partitions of each table.
-- include: config

-- Sets what is remembered of a partition; '' for nothing.
local function set_refusals(tbl, partition, text)
  local key = refusals_key(tbl)
  if text == '' then call('HDEL', key, partition) else call('HSET', key, partition, text) end
  local partitions = call('HLEN', key)
  if partitions > 0 then call('HSET', REFUSING_TABLES, tbl, partitions) else call('HDEL', REFUSING_TABLES, tbl) end
end
