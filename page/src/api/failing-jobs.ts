// Jobs that failed and are tried again, or are quarantined.
import { api, read } from './client';
import type { JobSummary } from './schema';

/** Jobs that are read of each state to find them. */
const JOBS_READ = 50;

/** Failing jobs of a table, or of all, the quarantined ones first. */
export async function readFailing(signal: AbortSignal, table?: string): Promise<readonly JobSummary[]> {
  const states = ['quarantined', 'delayed'] as const;
  const about = table === undefined ? {} : { table };
  const pages = await Promise.all(
    states.map(state =>
      read(api.GET('/v1/jobs', { params: { query: { state, limit: JOBS_READ, ...about } }, signal })),
    ),
  );
  return pages.flatMap(page => page.jobs).filter(one => one.attempts > 0 && one.error !== '');
}
