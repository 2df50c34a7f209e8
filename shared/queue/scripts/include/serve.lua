-- One claim: three heads, one pop, three tag updates.
-- include: index
local MAX_BANDS = 8

-- The first ready strict band by rank, else the ready band with the least start tag; nil if nothing is ready.
local function next_band()
  local by_tag = call('ZRANGE', ready_key(ROOT), 0, MAX_BANDS - 1)
  local strict = nil
  for _, band in ipairs(by_tag) do
    if is_strict(band) and (not strict or tonumber(band) < tonumber(strict)) then strict = band end
  end
  return strict or by_tag[1]
end

local function head(node) return call('ZRANGE', ready_key(node), 0, 0)[1] end

-- A child without work was left behind by a log cut in the middle; it leaves the tree, so that others can be served.
local function drop_empty(band, tenant, tbl)
  if tbl then
    leave_tree(band, tenant, tbl)
  elseif not tenant or not leave(band, tenant) then
    leave(ROOT, band)
  end
end

-- Takes the next job out of the queued index, charged by its estimated cost. Returns whether there was anything, and the
-- job's id and hash; an entry without a queued job is passed over.
local function take_next()
  local band = next_band()
  if not band then return false end
  local tenant = head(band)
  local tbl = tenant and head(leaf_node(band, tenant))
  local flow = tbl and flow_key(band, tenant, tbl)
  local id = flow and call('ZPOPMIN', flow)[1]
  if not id then
    drop_empty(band, tenant, tbl)
    return true
  end
  local job = read_job(id)
  if job and job.state ~= 'queued' then job = nil end
  call('ZREM', QUEUED, id)
  charge_path(band, tenant, tbl, job and tonumber(job.cost) or 0, call('EXISTS', flow) == 1)
  return true, id, job
end
