-- The history: an entry for each run that ended, by its worker's word or because its lease ran out.
-- include: job
local RUNS_KEPT = 10000

local function write_history(id, job, run)
  call('XADD', HISTORY, 'MAXLEN', '~', RUNS_KEPT, '*',
    'job', id, 'table', job.table, 'cell', job.cell, 'kind', job.kind, 'tenant', job.tenant, 'band', job.band,
    'token', job.token, 'verdict', run.verdict, 'outcome', run.outcome, 'worker', run.worker, 'attempts', job.attempts,
    'version', job.version, 'cost', run.cost, 't0', job.t0, 'started', job.started, 'finished', now_ms,
    'result', run.result, 'error', run.error)
end
