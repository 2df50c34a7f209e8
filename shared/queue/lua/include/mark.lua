-- What happened to a table, for its history. A table that is not read yet, or no more, gets no mark that would outlive it;
-- one of which many jobs fail together gets one mark an hour. A damaged key stops no job: calls are protected.
-- include: base
local mark
do
  -- As in decider/store/tables/table_history.py.
  local MARKS_KEPT = 200
  local SAME_MS = 3600000

  function mark(tbl, kind, detail)
    if call('EXISTS', table_state_key(tbl)) == 0 then return end
    local last = redis.pcall('XREVRANGE', marks_key(tbl), '+', '-', 'COUNT', 1)[1]
    local is_same = last and last[2][2] == kind and last[2][4] == detail
    if is_same and now_ms - tonumber(last[1]:match('^%d+')) < SAME_MS then return end
    redis.pcall('XADD', marks_key(tbl), 'MAXLEN', '~', MARKS_KEPT, '*', 'kind', kind, 'detail', detail)
  end
end
