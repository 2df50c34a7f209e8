// Rewrites from the table's own log: what each read and wrote, and the files of the one that is opened.
import { useState } from 'preact/hooks';
import { api, read } from '../../api/client';
import type { RewriteView, TableStatus } from '../../api/schema';
import { never, thisTable, useResource } from '../../api/use-resource';
import { duration } from '../../format/times';
import { Card, Empty, Loaded } from '../../parts/frame';
import { Histogram, levelLabel } from '../../parts/histogram';
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
          <Empty>No rewrite is recorded in the part of the log that is kept.</Empty>
        ) : (
          <>
            <Card title="Files read and written by size" note={`the latest ${optimizations.length} rewrites`}>
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

function RewriteList({ table, rewrites }: { table: TableStatus; rewrites: readonly RewriteView[] }) {
  const [open, setOpen] = useState<number | null>(null);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Rewrites">
      <table class="list">
        <thead>
          <tr>
            <th scope="col">Committed</th>
            <th scope="col" class="right wide-only">
              Version
            </th>
            <th scope="col">Partition</th>
            <th scope="col" class="wide-only">
              Kind
            </th>
            <th scope="col" class="right">
              Files
            </th>
            <th scope="col" class="right wide-only">
              Bytes
            </th>
            <th scope="col" class="right wide-only">
              Time
            </th>
            <th scope="col">
              <span class="hidden">Files</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {rewrites.map(one => (
            <>
              <tr key={one.write_id}>
                <td>
                  <Ago at={one.finished_at} />
                </td>
                <td class="right number wide-only">{one.version}</td>
                <td class="text">{one.partition_label ?? 'several partitions'}</td>
                <td class="wide-only">{one.optimization_name ?? '–'}</td>
                <td class="right">
                  <Count value={one.input.num_files} /> → <Count value={one.output.num_files} />
                </td>
                <td class="right wide-only">
                  <Bytes value={one.input.bytes} /> → <Bytes value={one.output.bytes} />
                </td>
                <td class="right number wide-only">
                  {one.process_time_ms === null ? '–' : duration(one.process_time_ms / 1000)}
                </td>
                <td class="right">
                  <button
                    type="button"
                    class="small"
                    aria-expanded={open === one.version}
                    onClick={() => setOpen(open === one.version ? null : one.version)}
                  >
                    {open === one.version ? 'Hide files' : 'Files'}
                  </button>
                </td>
              </tr>
              {open === one.version && (
                <tr key={`${one.write_id} files`}>
                  <td colSpan={8}>
                    <Files name={table.name} version={one.version} />
                  </td>
                </tr>
              )}
            </>
          ))}
        </tbody>
      </table>
    </div>
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
