// All queued jobs, a page at a time: there may be very many, and only the first are of interest most of the time.
import { useState } from 'preact/hooks';
import { api, read } from '../../api/client';
import type { JobSummary } from '../../api/schema';
import { never, useResource } from '../../api/use-resource';
import { notify } from '../../parts/action';
import { Card, Empty } from '../../parts/frame';
import { JobCards } from './job-cards';

const PAGE = 50;

export function QueuedJobs({ group }: { group: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <Card title="All queued jobs" note="by arrival">
      {isOpen ? (
        <Pages group={group} />
      ) : (
        <button type="button" onClick={() => setOpen(true)}>
          Show jobs
        </button>
      )}
    </Card>
  );
}

interface Shown {
  readonly jobs: readonly JobSummary[];
  readonly next: string | null;
}

async function readPage(group: string, token: string | null, signal?: AbortSignal): Promise<Shown> {
  const query = { group, state: 'queued', limit: PAGE, ...(token === null ? {} : { page_token: token }) } as const;
  const page = await read(api.GET('/v1/jobs', { params: { query }, ...(signal === undefined ? {} : { signal }) }));
  return { jobs: page.jobs, next: page.next_page_token };
}

function Pages({ group }: { group: string }) {
  const [more, setMore] = useState<Shown>({ jobs: [], next: null });
  const first = useResource('queued jobs', signal => readPage(group, null, signal), never);
  const next = more.jobs.length > 0 ? more.next : (first.data?.next ?? null);
  const jobs = [...(first.data?.jobs ?? []), ...more.jobs];
  const reload = () => {
    setMore({ jobs: [], next: null });
    first.reload();
  };
  const readMore = () => {
    readPage(group, next)
      .then(page => setMore(known => ({ jobs: [...known.jobs, ...page.jobs], next: page.next })))
      .catch((failure: unknown) => notify(String(failure), true));
  };
  if (first.data !== undefined && jobs.length === 0) return <Empty>No job waits.</Empty>;
  return (
    <>
      <JobCards jobs={jobs} reload={reload} />
      <div class="dialog-actions">
        <button type="button" onClick={reload}>
          Read again
        </button>
        {next !== null && (
          <button type="button" onClick={readMore}>
            Show {PAGE} more
          </button>
        )}
      </div>
    </>
  );
}
