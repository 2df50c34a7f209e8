-- Background jobs give way to the other programs of a machine that is busy: an actor there claims none of them, and a running
-- one ends at its next step. Their `any_time` is -1, so that a merged job is one only if all of its requests are.
-- include: job

-- A machine that is never calm gets a job all the same once it has waited for so long: a day has its quiet hours, if any.
local MOST_WAIT_MS = 86400000

local function gives_way(job)
  return job.any_time == '-1' and now_ms - tonumber(job.first_ms) < MOST_WAIT_MS
end
