-- Write amplification: what the jobs of a table rewrite in 30 days of UTC, today included, against what its writers added in
-- them. A budget like the others (`include/budget.lua`), whose limit grows with what is added and whose days leave it one by one.
-- A run rewrites the greater of what it replaces and what it writes. Runs are counted whether or not the table has the limit.
-- RATES has `rewritten`: `day,bytes,..`; the decider keeps `ingested` in the table's state: `[[day,bytes],..]`.
-- include: config
local amplification_opens, rewrite_of, add_rewritten
do
  local DAYS, DAY_MS = 30, 86400000
  -- Kinds that rewrite no data.
  local WITHOUT_DATA = {
    vacuum = true, checkpoint = true, rewrite_manifests = true, merge_deletes = true,
    convert_deletes = true, compute_statistics = true, set_properties = true,
  }

  -- What this call knows to be rewritten, by table.
  local rewritten
  on_call_start[#on_call_start + 1] = function() rewritten = {} end

  local function by_day(text)
    local found = {}
    for day, bytes in (text or ''):gmatch('(%d+),(%d+)') do found[tonumber(day)] = tonumber(bytes) end
    return found
  end

  local function rewritten_of(tbl)
    rewritten[tbl] = rewritten[tbl] or by_day(call('HGET', rates_key(tbl), 'rewritten'))
    return rewritten[tbl]
  end

  -- The sum of the days after one, and the first of them.
  local function after(days, day)
    local sum, first = 0, math.huge
    for at, bytes in pairs(days) do
      if at > day then sum, first = sum + bytes, math.min(first, at) end
    end
    return sum, first
  end

  -- The bytes that a job of this kind rewrites, of five figures of its use.
  function rewrite_of(kind, figures) return WITHOUT_DATA[kind] and 0 or math.max(figures[2], figures[3]) end

  -- Returns when a job that rewrites so many bytes fits, nil if it does now, if writers go on to add as much as in these days;
  -- and whether it does not even then.
  function amplification_opens(tbl, limit, bytes)
    local today = math.floor(now_ms / DAY_MS)
    local done, ingested = rewritten_of(tbl), by_day(call('HGET', table_state_key(tbl), 'ingested'))
    local used, added, first = after(done, today - DAYS), after(ingested, today - DAYS)
    if bytes == 0 or used + bytes <= limit * added then return nil end
    local pace = added > 0 and added / (math.max(today, first) - first + 1) or 0
    for days = 1, DAYS do
      local left = today - DAYS + days
      used, added = after(done, left), after(ingested, left)
      if used + bytes <= limit * (added + pace * days) then return (today + days) * DAY_MS, false end
    end
    return (today + DAYS) * DAY_MS, true
  end

  -- Adds bytes to a day that is still counted; days that are not are forgotten. `is_foreseen`: for this call alone.
  function add_rewritten(tbl, day, bytes, is_foreseen)
    if bytes == 0 then return end
    local days, texts = rewritten_of(tbl), {}
    local oldest = math.floor(now_ms / DAY_MS) - DAYS
    if day > oldest then days[day] = math.max(0, (days[day] or 0) + bytes) end
    for at, sum in pairs(days) do
      if at > oldest then texts[#texts + 1] = int(at) .. ',' .. int(sum) end
    end
    table.sort(texts)
    if not is_foreseen then call('HSET', rates_key(tbl), 'rewritten', table.concat(texts, ',')) end
  end
end
