-- What audits share: a job's index and path are computed anew from its hash, and what differs is written. On a consistent
-- store nothing is written.
-- include: index
local mended
fresh[#fresh + 1] = function() mended = 0 end

local function mend() mended = mended + 1 end

-- A path to a flow that has jobs; unlike `enter_tree`, each step is looked at, because any key may be missing.
local function mend_path(band, tenant, tbl)
  local leaf = leaf_node(band, tenant)
  if call('ZSCORE', parked_key('table|' .. tbl), leaf) then return end
  if not is_ready(leaf, tbl) then join(leaf, tbl) mend() end
  if call('ZSCORE', parked_key('tenant|' .. tenant), band) then return end
  if not is_ready(band, tenant) then join(band, tenant) mend() end
  if not is_ready(ROOT, band) then join(ROOT, band) mend() end
end
