#!lua flags=allow-oom
--[[
  heartbeat: extends the leases that these tokens still hold; a job whose work window has closed is
  asked to stop. Nothing else changes.

  KEYS[1]  prefix of the queue
  ARGV[1]  lease ms
  ARGV[2..]  id, token, progress ("" keeps the last one) of each job

  Output: list of OK, LOST or STOP:<reason>, in the order given
]]
-- include: config
local deadline = now_ms + tonumber(ARGV[1])
local replies = {}
for i = 2, #ARGV, 3 do
  local id, token, progress = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local key = job_key(id)
  local state, owner, stop, closes = unpack(call('HMGET', key, 'state', 'token', 'stop', 'closes'))
  local reply = 'LOST'
  if state == 'leased' and owner == token then
    call('ZADD', LEASES, deadline, id)
    if progress ~= '' then call('HSET', key, 'progress', progress) end
    if not stop and closes and now_ms >= tonumber(closes) then
      stop = 'window'
      call('HSET', key, 'stop', stop)
    end
    reply = stop and 'STOP:' .. stop or 'OK'
  end
  replies[#replies + 1] = reply
end
return replies
