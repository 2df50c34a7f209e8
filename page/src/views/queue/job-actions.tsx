// What an operator can do with a job: run it next or now, cancel it.
import { api, read } from '../../api/client';
import type { JobSummary } from '../../api/schema';
import { Action } from '../../parts/action';

type ActedOn = Pick<JobSummary, 'id' | 'state'> & Partial<Pick<JobSummary, 'attempts'>>;

export function JobActions({ job, reload }: { job: ActedOn; reload: () => void }) {
  const path = { job: job.id };
  const waits = job.state === 'delayed' || job.state === 'quarantined';
  return (
    <span class="job-actions">
      {waits && (
        <Action
          kind="small"
          done={reload}
          run={async () => (await read(api.POST('/v1/jobs/{job}/requeue', { params: { path } }))).message}
        >
          {job.attempts === 0 ? 'Start now' : 'Retry now'}
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
