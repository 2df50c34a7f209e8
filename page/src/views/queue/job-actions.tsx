// What an operator can do with a job: run it next, retry it, cancel it.
import { api, read } from '../../api/client';
import type { JobSummary } from '../../api/schema';
import { Action } from '../../parts/action';

export function JobActions({ job, reload }: { job: Pick<JobSummary, 'id' | 'state'>; reload: () => void }) {
  const path = { job: job.id };
  const isFailed = job.state === 'delayed' || job.state === 'quarantined';
  return (
    <span class="job-actions">
      {isFailed && (
        <Action
          kind="small"
          done={reload}
          run={async () => (await read(api.POST('/v1/jobs/{job}/requeue', { params: { path } }))).message}
        >
          Retry now
        </Action>
      )}
      {job.state === 'queued' && (
        <Action
          kind="small"
          done={reload}
          run={async () => (await read(api.POST('/v1/jobs/{job}/expedite', { params: { path } }))).message}
        >
          Expedite
        </Action>
      )}
      <Action
        kind="small"
        done={reload}
        {...(job.state === 'leased'
          ? { confirm: 'Stop this run? Its actor stops after the current file groups; what is committed stays.' }
          : {})}
        run={async () => (await read(api.DELETE('/v1/jobs/{job}', { params: { path } }))).message}
      >
        {job.state === 'leased' ? 'Stop' : 'Cancel'}
      </Action>
    </span>
  );
}
