-- A call whose reply was lost is sent again with the same nonce and gets the same reply, without being run again.
-- A reply is kept for two minutes, longer than all retries of an executor (a few attempts of a few seconds).
-- include: config
local REPLY_TTL_MS = 120000

local function recall(worker, nonce) return call('GET', reply_key(worker, nonce)) end

local function remember(worker, nonce, reply)
  call('SET', reply_key(worker, nonce), reply, 'PX', REPLY_TTL_MS)
  return reply
end
