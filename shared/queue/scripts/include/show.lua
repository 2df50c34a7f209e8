-- A job for reading: its fields, with the time at which the index of its state has it.
-- include: config
local TIMED = {leased = LEASE, delayed = DELAY, quarantined = DEAD}

local function show(id)
  local fields = call('HGETALL', job_key(id))
  if #fields == 0 then return false end
  local index = TIMED[call('HGET', job_key(id), 'state')]
  return {id, index and call('ZSCORE', index, id) or '', fields}
end
