#!lua flags=allow-oom
--[[
  heartbeat: extends the leases that these tokens still hold; a job whose work window has closed, or a background job on a
  machine that is busy, is asked to stop. Nothing else changes.

  KEYS[1]  prefix of the queue
  ARGV[1]  lease ms
  ARGV[2]  1 if the worker's machine is busy, else 0
  ARGV[3..]  id, token, progress ("" keeps the last one) of each job

  Output: list of OK, LOST or STOP:<reason>, in the order given
]]
-- include: capacity
local deadline = now_ms + tonumber(ARGV[1])
local replies = {}
for i = 3, #ARGV, 3 do
  local id, token, progress = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local key = job_key(id)
  local state, owner, stop, closes = unpack(call('HMGET', key, 'state', 'token', 'stop', 'closes'))
  local reply = 'LOST'
  if state == 'leased' and owner == token then
    call('ZADD', LEASES, deadline, id)
    if progress ~= '' then call('HSET', key, 'progress', progress) end
    if not stop then
      if closes and now_ms >= tonumber(closes) then
        stop = 'window'
      elseif ARGV[2] == '1' and gives_way(read_job(id, {'state', 'any_time', 'first_ms'})) then
        stop = 'load'
      end
      if stop then call('HSET', key, 'stop', stop) end
    end
    reply = stop and 'STOP:' .. stop or 'OK'
  end
  replies[#replies + 1] = reply
end
return replies
