// One table: its figures, its actions, and a tab for each question that one asks about it.
import type { ComponentChildren } from 'preact';
import { api, read } from '../../api/client';
import { readFailing } from '../../api/failing-jobs';
import { useGroups } from '../../api/groups';
import type { JobSummary, TableStatus } from '../../api/schema';
import { mayOperate } from '../../api/session';
import { anyJob, type Resource, thisTable, useResource } from '../../api/use-resource';
import { bytes, count, plural, ratio } from '../../format/numbers';
import { usedDetail, usedText } from '../../format/usage';
import { formatRoute, route } from '../../navigation/route';
import { Badge } from '../../parts/badge';
import { Figure, Figures, Head, Loaded } from '../../parts/frame';
import { NextTry } from '../../parts/next-try';
import { Ago, Bytes, Compactness, Count } from '../../parts/values';
import { DecisionsTab } from './decisions-tab';
import { HistoryTab } from './history-tab';
import { LayoutTab } from './layout-tab';
import { PartitionsTab } from './partitions-tab';
import { PolicyTab } from './policy-tab';
import { RewritesTab } from './rewrites-tab';
import { TableActions } from './table-actions';
import { WhatIfTab } from './what-if-tab';

const TABS = [
  ['layout', 'Layout'],
  ['history', 'History'],
  ['partitions', 'Partitions'],
  ['decisions', 'Decisions'],
  ['rewrites', 'Rewrites'],
  ['policy', 'Policy'],
  ['what-if', 'What-if'],
] as const;

export function TableView({ name }: { name: string }) {
  const status: Resource<TableStatus> = useResource(
    name,
    signal => read(api.GET('/v1/tables/{name}', { params: { path: { name } }, signal })),
    event => thisTable(status.data?.id)(event),
  );
  const tab = TABS.find(([key]) => key === route.value.params['tab'])?.[0] ?? 'layout';
  const table = status.data;
  return (
    <>
      <Head title={name} sub={table === undefined ? undefined : <Whereabouts table={table} />}>
        {table !== undefined && mayOperate.value && <TableActions table={table} reload={status.reload} />}
      </Head>
      <Loaded of={status}>
        {found => (
          <>
            <Troubles table={found} />
            <TableFigures table={found} />
            <nav class="tabs" aria-label="Questions about this table">
              {TABS.map(([key, title]) => (
                <a
                  key={key}
                  href={formatRoute(['tables', name], key === 'layout' ? {} : { tab: key })}
                  aria-current={key === tab ? 'page' : undefined}
                >
                  {title}
                </a>
              ))}
            </nav>
            {contentOf(tab, found, status.reload)}
          </>
        )}
      </Loaded>
    </>
  );
}

function contentOf(tab: string, table: TableStatus, reload: () => void): ComponentChildren {
  switch (tab) {
    case 'history':
      return <HistoryTab table={table} />;
    case 'partitions':
      return <PartitionsTab table={table} />;
    case 'decisions':
      return <DecisionsTab table={table} />;
    case 'rewrites':
      return <RewritesTab table={table} />;
    case 'policy':
      return <PolicyTab table={table} reload={reload} />;
    case 'what-if':
      return <WhatIfTab table={table} reload={reload} />;
    default:
      return <LayoutTab table={table} />;
  }
}

function Whereabouts({ table }: { table: TableStatus }) {
  const groups = useGroups().data ?? [];
  return (
    <>
      <span class="location" title={table.location}>
        {table.location}
      </span>{' '}
      · tenant <a href={formatRoute(['tables'], { tenant: table.tenant })}>{table.tenant}</a>{' '}
      {groups.length > 1 && (
        <>
          · group <a href={formatRoute(['queue'], { group: table.group })}>{table.group}</a>{' '}
        </>
      )}
      <Badge state={conditionOf(table)} />
    </>
  );
}

/** Its condition; what a person has just switched is known at once, and the condition a moment later. */
function conditionOf(table: TableStatus): string {
  if (table.paused) return 'paused';
  if (!isEnabled(table)) return 'disabled';
  return table.condition === 'paused' || table.condition === 'disabled' ? 'running' : table.condition;
}

export function isEnabled(table: TableStatus): boolean {
  return table.policy.values.find(one => one.property === 'lakewright.enabled')?.value !== false;
}

const FAILING_SHOWN = 5;

function Troubles({ table }: { table: TableStatus }) {
  const failing = useResource(`failing ${table.name}`, signal => readFailing(signal, table.name), anyJob);
  return (
    <>
      {table.refusal !== null && (
        <p class="problem" role="alert">
          <strong>Refused.</strong> {table.refusal.reason}
        </p>
      )}
      {table.refused_files.map((one, at) => (
        <p key={`${one.partition_key} ${at}`} class="problem" role="alert">
          <strong>{`${plural(one.files, 'file')} of ${one.partition_label} refused.`}</strong> {one.message} (
          {one.paths.join(', ')}
          ). {one.remedy}.
        </p>
      ))}
      {table.policy.issues.length > 0 && (
        <p class="problem" role="alert">
          <strong>Invalid properties.</strong>{' '}
          {table.policy.issues.map(one => `${one.property} = ${one.value}: ${one.reason}`).join('; ')}. The last valid
          ones are in effect.
        </p>
      )}
      {failing.data?.slice(0, FAILING_SHOWN).map(job => (
        <FailedJob key={job.id} job={job} />
      ))}
      {table.state === null && table.refusal === null && <p class="loading">The log has not been read yet.</p>}
    </>
  );
}

/** Why a job of the table did not do its work, and when it is tried again. */
function FailedJob({ job }: { job: JobSummary }) {
  return (
    <p class="problem" role="alert">
      <strong>{`${job.partition_label}: ${plural(job.attempts, 'failed attempt')}`}</strong>
      <NextTry at={job.retry_at} />. {job.error} <a href={formatRoute(['queue'])}>Retry or cancel</a>
    </p>
  );
}

function TableFigures({ table }: { table: TableStatus }) {
  const { layout, state } = table;
  const mean = layout.files === 0 ? null : layout.bytes / layout.files;
  return (
    <Figures>
      <Figure label="Files" note={`${count(layout.small_files)} below the full size`}>
        <Count value={layout.files} />
      </Figure>
      <Figure label="Size" note={mean === null ? undefined : <MeanSize value={mean} />}>
        <Bytes value={layout.bytes} />
      </Figure>
      <Figure label="To gain" note={<Backlog table={table} />}>
        <Compactness files={layout.files} needed={layout.files_needed} excess={layout.excess_ratio} />
      </Figure>
      <Figure label="Partitions" note={`${count(table.eligible_partitions)} eligible for a rewrite`}>
        <Count value={table.partitions} />
      </Figure>
      <Figure label="Version" note={<Committed table={table} />}>
        {state === null ? '–' : String(state.version)}
      </Figure>
      <Figure label="Rewrites" note={<Used table={table} />}>
        <Count value={table.counters['rewrites'] ?? 0} />
      </Figure>
    </Figures>
  );
}

function Backlog({ table }: { table: TableStatus }) {
  const { backlog_bytes_left: left, steady_write_amplification: steady } = table.amplification;
  if (left > 0) return <>{bytes(left)} of the existing files left</>;
  return <>{steady === null ? 'no backlog left' : `${ratio(steady)} bytes rewritten per byte written`}</>;
}

function Used({ table }: { table: TableStatus }) {
  const replaced = table.counters['files_replaced'] ?? 0;
  if (table.usage.core_s === 0) return <>{plural(replaced, 'file')} replaced</>;
  return (
    <span title={usedDetail(table.usage)}>
      {plural(replaced, 'file')} replaced, for {usedText(table.usage)}
    </span>
  );
}

function MeanSize({ value }: { value: number }) {
  return (
    <>
      mean <Bytes value={Math.round(value)} />
    </>
  );
}

function Committed({ table }: { table: TableStatus }) {
  if (table.state === null) return <>not read yet</>;
  return (
    <>
      committed <Ago at={table.state.committed_at} />
    </>
  );
}
