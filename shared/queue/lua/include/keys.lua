-- Every key of the queue, twin of keys.py with the same names in upper case or behind `_key`; nothing else
-- builds a key.
local P, CONFIG, VIRTUAL_TIMES, QUEUED, LEASES, DELAYED, QUARANTINED, DUE_TABLES, IN_FLIGHT, RUNS, EVENTS, ASIDE, CHANGED_TABLES
local REFUSING_TABLES, WORK_WINDOWS, BUDGETS, SPENT, BUDGET_WAITS
local ROOT = 'root'

-- Builds the names again only if the last call served another queue.
local function name_keys(prefix)
  if prefix == P then return end
  P = prefix
  CONFIG, VIRTUAL_TIMES, QUEUED = P .. 'cfg', P .. 'v', P .. 'queued'
  LEASES, DELAYED, QUARANTINED, DUE_TABLES = P .. 'lease', P .. 'delay', P .. 'dead', P .. 'due'
  IN_FLIGHT, RUNS, EVENTS, ASIDE, CHANGED_TABLES = P .. 'infl', P .. 'hist', P .. 'ev', P .. 'aside', P .. 'moved'
  REFUSING_TABLES, WORK_WINDOWS = P .. 'refusing', P .. 'windows'
  BUDGETS, SPENT, BUDGET_WAITS = P .. 'budgets', P .. 'spent', P .. 'budgetwaits'
end

local function job_key(id) return P .. 'j:' .. id end
local function leaf_node(band, tenant) return band .. '|' .. tenant end
local function flow_key(band, tenant, tbl) return P .. 'f:' .. leaf_node(band, tenant) .. '|' .. tbl end
local function ready_key(node) return P .. 'n:' .. node end
local function idle_key(node) return P .. 'i:' .. node end
local function held_key(node) return P .. 'h:' .. node end
local function throttled_key(name) return P .. 'p:' .. name end
local function aside_jobs_key(ability) return P .. 'x:' .. ability end
local function aside_flow_key(band, tenant, tbl) return P .. 'y:' .. leaf_node(band, tenant) .. '|' .. tbl end
local function aside_children_key(node) return P .. 's:' .. node end
local function reply_key(worker, nonce) return P .. 'w:' .. worker .. '|' .. nonce end
local function table_state_key(tbl) return P .. 'cur:' .. tbl end
local function partitions_key(tbl) return P .. 'partitions:' .. tbl end
local function refusals_key(tbl) return P .. 'refusals:' .. tbl end
local function ledger_key(tbl) return P .. 'led:' .. tbl end
local function measures_key(tbl) return P .. 'meas:' .. tbl end
local function rates_key(tbl) return P .. 'rates:' .. tbl end
local function timers_key(tbl) return P .. 'due:' .. tbl end
local function staged_partitions_key(name) return P .. 'new:' .. name end
local function staged_timers_key(name) return P .. 'newdue:' .. name end
local function counters_key(tbl) return P .. (tbl and 'count:' .. tbl or 'count') end
