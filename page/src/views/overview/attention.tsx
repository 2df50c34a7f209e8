// What needs attention: each finding is a sentence, and a link to where it can be examined.
import type { ComponentChildren } from 'preact';
import { api, read } from '../../api/client';
import { readFailing } from '../../api/failing-jobs';
import type { DeciderStatus, JobSummary, RefusedFilesList, TableRows } from '../../api/schema';
import { anyJob, anyTable, useResource } from '../../api/use-resource';
import { plural } from '../../format/numbers';
import { duration } from '../../format/times';
import { formatRoute } from '../../navigation/route';
import { Card, Empty } from '../../parts/frame';
import { NextTry } from '../../parts/next-try';
import { Sentence } from '../../parts/values';

export interface Finding {
  readonly key: string;
  readonly tone: 'bad' | 'warn';
  readonly text: ComponentChildren;
}

const STALE_BACKLOG_S = 60;
const REFUSED_SHOWN = 5;

/** Failing jobs that are shown. */
const FAILING_SHOWN = 5;

/** Findings about the service, its actors, jobs and tables; none while nothing is read. */
export function useFindings(
  status: DeciderStatus | undefined,
  conditions: Readonly<Record<string, number>>,
): readonly Finding[] {
  const actors = useResource('unserved', signal => read(api.GET('/v1/actors', { signal })), anyTable);
  const refused = useResource(
    'refused-files',
    signal => read(api.GET('/v1/refused-files', { params: { query: { limit: REFUSED_SHOWN } }, signal })),
    anyTable,
  );
  const failing = useResource('failing jobs', signal => readFailing(signal), anyJob);
  const counts = NAMED.map(one => conditions[one.condition] ?? 0);
  const named = useResource(`named ${counts.join(' ')}`, signal => readNamed(counts, signal), anyTable);
  if (status === undefined) return [];
  return [
    ...statusFindings(status),
    ...(failing.data ?? []).slice(0, FAILING_SHOWN).map(failingFinding),
    ...moreFailing((failing.data?.length ?? 0) - FAILING_SHOWN),
    ...(named.data ?? []).flatMap(tableFindings),
    ...refusedFindings(refused.data),
    ...(actors.data?.unserved ?? []).map(one => ({
      key: `unserved ${one.ability}`,
      tone: 'bad' as const,
      text: (
        <a href={formatRoute(['actors'])}>
          {plural(one.jobs, 'job')} cannot run: no actor can do <code>{one.ability}</code>
        </a>
      ),
    })),
    ...(actors.data?.actors ?? [])
      .filter(one => one.state === 'died')
      .map(one => ({
        key: `died ${one.id}`,
        tone: 'warn' as const,
        text: (
          <a href={formatRoute(['actors'])}>
            Actor {one.id} died. {one.error}
          </a>
        ),
      })),
  ];
}

export function Attention({ findings }: { findings: readonly Finding[] }) {
  return (
    <Card title="Needs attention" note={findings.length === 0 ? undefined : plural(findings.length, 'finding')}>
      {findings.length === 0 ? (
        <Empty>
          Nothing: Redis is durable, every job has an actor that can run it, and no table is refused or fails.
        </Empty>
      ) : (
        <ul class="findings">
          {findings.map(one => (
            <li key={one.key} class={one.tone}>
              {one.text}
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

function failingFinding(job: JobSummary): Finding {
  return {
    key: `failing ${job.id}`,
    tone: 'bad',
    text: (
      <a href={formatRoute(['queue'])}>
        {job.table_name}, {job.partition_label}: {plural(job.attempts, 'failed attempt')}
        <NextTry at={job.retry_at} />. {job.error}
      </a>
    ),
  };
}

function moreFailing(jobs: number): Finding[] {
  const text = <a href={formatRoute(['queue'])}>{plural(jobs, 'more job')} failed</a>;
  return jobs > 0 ? [{ key: 'more failing', tone: 'bad', text }] : [];
}

function statusFindings(status: DeciderStatus): Finding[] {
  const found: Finding[] = status.redis.issues.map(text => ({ key: text, tone: 'bad', text }));
  const present = (status.actors['working'] ?? 0) + (status.actors['idle'] ?? 0);
  const waiting = status.queue.depth['queued'] ?? 0;
  if (present === 0 && waiting > 0) {
    const text = (
      <a href={formatRoute(['actors'])}>
        No actor takes jobs, and {plural(waiting, 'job')} {waiting === 1 ? 'waits' : 'wait'}.
      </a>
    );
    found.push({ key: 'no actor', tone: 'bad', text });
  }
  for (const one of status.failing_tasks) {
    found.push({ key: one.name, tone: 'bad', text: `Background task ${one.name} fails: ${one.error}` });
  }
  const { tables_file: file, registry } = status;
  for (const text of [...(file?.error ? [file.error] : []), ...(file?.problems ?? [])]) {
    found.push({ key: `tables file ${text}`, tone: 'bad', text: `Tables file: ${text}` });
  }
  if (registry?.error) found.push({ key: 'registry', tone: 'bad', text: `Registry not saved: ${registry.error}` });
  if (!status.defaults.in_sync) {
    const text = 'This decider was started with other defaults than the ones in effect.';
    found.push({ key: 'defaults', tone: 'warn', text });
  }
  if (status.backlog.oldest_wait_s > STALE_BACKLOG_S) {
    const text = `${plural(status.backlog.tables_waiting, 'table')} to be read, the first for ${duration(status.backlog.oldest_wait_s)}.`;
    found.push({ key: 'backlog', tone: 'warn', text });
  }
  return found;
}

function refusedFindings(list: RefusedFilesList | undefined): Finding[] {
  return (list?.refused ?? []).map((one, at) => ({
    key: `refused files ${one.table} ${one.partition_key} ${at}`,
    tone: 'warn',
    text: (
      <a href={formatRoute(['tables', one.table])}>
        {one.table}, {one.partition_label}: {plural(one.files, 'file')} cannot be rewritten.{' '}
        <Sentence text={one.reason_text} />
      </a>
    ),
  }));
}

/** Conditions of tables that a person has to end; quarantined jobs are findings of their own. */
const NAMED = [
  { condition: 'refused', tone: 'warn', one: 'is refused', many: 'are refused' },
  {
    condition: 'invalid_properties',
    tone: 'bad',
    one: 'has properties that cannot be used',
    many: 'have properties that cannot be used',
  },
] as const;

const TABLES_NAMED = 3;

interface NamedTables {
  readonly of: (typeof NAMED)[number];
  readonly found: TableRows;
}

/** The first tables in each condition that some are in. */
async function readNamed(counts: readonly number[], signal: AbortSignal): Promise<NamedTables[]> {
  const reads = NAMED.filter((_, at) => (counts[at] ?? 0) > 0).map(async of => {
    const query = { condition: of.condition, limit: TABLES_NAMED };
    return { of, found: await read(api.GET('/v1/table-rows', { params: { query }, signal })) };
  });
  return Promise.all(reads);
}

function tableFindings({ of, found }: NamedTables): Finding[] {
  const { condition, tone } = of;
  const named = found.rows.map(one => ({
    key: `${condition} ${one.name}`,
    tone,
    text: (
      <a href={formatRoute(['tables', one.name])}>
        {one.name} {of.one}. {one.refusal?.reason}
      </a>
    ),
  }));
  const more = found.matching - named.length;
  if (more <= 0) return named;
  const text = `${plural(more, 'more table')} ${more === 1 ? of.one : of.many}`;
  const link = <a href={formatRoute(['tables'], { condition })}>{text}</a>;
  return [...named, { key: `more ${condition}`, tone, text: link }];
}
