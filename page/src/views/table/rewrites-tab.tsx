// Rewrites from the table's own log: what each read and wrote, and the files of the one that is opened.
import { useState } from 'preact/hooks';
import { api, read } from '../../api/client';
import type { RewriteView, TableStatus } from '../../api/schema';
import { never, thisTable, useResource } from '../../api/use-resource';
import { plural } from '../../format/numbers';
import { duration } from '../../format/times';
import { Card, Empty, Loaded } from '../../parts/frame';
import { Histogram, levelLabel } from '../../parts/histogram';
import { type Column, List } from '../../parts/list';
import { Ago, Bytes, Count } from '../../parts/values';
import { rewrittenLevels } from './layout-sums';

const SHOWN = 50;

export function RewritesTab({ table }: { table: TableStatus }) {
  const rewrites = useResource(
    `rewrites ${table.name}`,
    signal =>
      read(
        api.GET('/v1/tables/{name}/optimizations', {
          params: { path: { name: table.name }, query: { limit: SHOWN } },
          signal,
        }),
      ),
    thisTable(table.id),
  );
  return (
    <Loaded of={rewrites}>
      {({ optimizations }) =>
        optimizations.length === 0 ? (
          <Empty>No rewrite is recorded in the part of the log that is kept. Optimize… shows what one would do.</Empty>
        ) : (
          <>
            <Card
              title="Files read and written by size"
              note={`the latest ${plural(optimizations.length, 'commit')} of rewrites`}
            >
              <Histogram bars={levelBars(table, optimizations)} now="read" after="written" />
            </Card>
            <Card title="Rewrites">
              <RewriteList table={table} rewrites={optimizations} />
            </Card>
          </>
        )
      }
    </Loaded>
  );
}

function levelBars(table: TableStatus, rewrites: readonly RewriteView[]) {
  const { before, after } = rewrittenLevels(rewrites);
  return table.layout.levels.map(level => ({
    label: levelLabel(level),
    title: `level ${level.level}`,
    value: before[level.level] ?? 0,
    other: after[level.level] ?? 0,
  }));
}

const COLUMNS: Column<RewriteView>[] = [
  { head: 'Committed', show: one => <Ago at={one.finished_at} /> },
  { head: 'Version', place: 'right wide-only', kind: 'number', show: one => one.version },
  { head: 'Partition', kind: 'text', show: one => one.partition_label ?? 'several partitions' },
  { head: 'Kind', place: 'wide-only', show: one => one.optimization_name ?? '–' },
  {
    head: 'Files',
    place: 'right',
    show: one => (
      <>
        <Count value={one.input.num_files} /> → <Count value={one.output.num_files} />
      </>
    ),
  },
  {
    head: 'Bytes',
    place: 'right wide-only',
    show: one => (
      <>
        <Bytes value={one.input.bytes} /> → <Bytes value={one.output.bytes} />
      </>
    ),
  },
  {
    head: 'Time',
    place: 'right wide-only',
    kind: 'number',
    show: one => (one.process_time_ms === null ? '–' : duration(one.process_time_ms / 1000)),
  },
];

function RewriteList({ table, rewrites }: { table: TableStatus; rewrites: readonly RewriteView[] }) {
  const [open, setOpen] = useState<number | null>(null);
  const files: Column<RewriteView> = {
    head: <span class="hidden">Files</span>,
    place: 'right',
    show: one => (
      <button
        type="button"
        class="small"
        aria-expanded={open === one.version}
        onClick={() => setOpen(open === one.version ? null : one.version)}
      >
        {open === one.version ? 'Hide files' : 'Files'}
      </button>
    ),
  };
  return (
    <List
      label="Rewrites"
      rows={rewrites}
      keyOf={one => one.write_id}
      columns={[...COLUMNS, files]}
      below={one => (open === one.version ? <Files name={table.name} version={one.version} /> : null)}
    />
  );
}

function Files({ name, version }: { name: string; version: number }) {
  const found = useResource(
    `files ${name} ${version}`,
    signal =>
      read(
        api.GET('/v1/tables/{name}/optimizations', {
          params: { path: { name }, query: { limit: 1, before: version + 1, files: true } },
          signal,
        }),
      ),
    never,
  );
  return (
    <Loaded of={found}>
      {({ optimizations }) => (
        <div class="file-lists">
          <FileNames title="Replaced" files={optimizations[0]?.input.files ?? []} />
          <FileNames title="Written" files={optimizations[0]?.output.files ?? []} />
        </div>
      )}
    </Loaded>
  );
}

function FileNames({ title, files }: { title: string; files: readonly string[] }) {
  return (
    <div>
      <h3>
        {title} ({files.length})
      </h3>
      <ul>
        {files.map(file => (
          <li key={file}>{file}</li>
        ))}
      </ul>
    </div>
  );
}
