// Decisions on a timeline, skips included: "why was this partition not optimized at 14:03?".
import { useState } from 'preact/hooks';
import { api, read } from '../../api/client';
import type { DecisionRecord, TableStatus } from '../../api/schema';
import { thisTable, useResource } from '../../api/use-resource';
import { bytes, exact, plural } from '../../format/numbers';
import { predictionText } from '../../format/prediction';
import { clock } from '../../format/times';
import { route, setParams } from '../../navigation/route';
import { Badge } from '../../parts/badge';
import { Card, Empty, Loaded } from '../../parts/frame';
import { Ago, Sentence } from '../../parts/values';

const SHOWN = 100;

export function DecisionsTab({ table }: { table: TableStatus }) {
  const partition = route.value.params['partition'] ?? '';
  const at = route.value.params['at'] ?? '';
  const decisions = useResource(
    JSON.stringify([table.name, partition, at]),
    signal =>
      read(
        api.GET('/v1/tables/{name}/decisions', {
          params: { path: { name: table.name }, query: queryOf(partition, at) },
          signal,
        }),
      ),
    event => at === '' && thisTable(table.id)(event),
  );
  return (
    <Card title="Decisions" note={at === '' ? 'newest first, skips included' : 'in effect at that time'}>
      <Filters partition={partition} at={at} />
      <Loaded of={decisions}>
        {found =>
          found.decisions.length === 0 ? (
            <Empty>No decision is stored for this choice.</Empty>
          ) : (
            <ol class="timeline">
              {found.decisions.map((one, index) => (
                <Decision
                  key={`${one.at_ms} ${one.version ?? ''} ${one.partition_key ?? ''} ${one.action} ${index}`}
                  one={one}
                />
              ))}
            </ol>
          )
        }
      </Loaded>
    </Card>
  );
}

function queryOf(partition: string, at: string): { limit: number; partition?: string; at?: string } {
  const query: { limit: number; partition?: string; at?: string } = { limit: SHOWN };
  if (partition !== '') query.partition = partition;
  const time = new Date(at);
  if (at !== '' && !Number.isNaN(time.getTime())) query.at = time.toISOString();
  return query;
}

function Filters({ partition, at }: { partition: string; at: string }) {
  const [text, setText] = useState(partition);
  return (
    <form
      class="filters"
      onSubmit={event => {
        event.preventDefault();
        setParams({ partition: text.trim() });
      }}
    >
      <input
        type="search"
        aria-label="Partition"
        placeholder="Partition, such as dt=2026-01-01"
        value={text}
        onInput={event => {
          setText(event.currentTarget.value);
          if (event.currentTarget.value === '') setParams({ partition: '' });
        }}
      />
      <label class="inline">
        <span>In effect at</span>
        <input
          type="datetime-local"
          step={1}
          value={at}
          onChange={event => setParams({ at: event.currentTarget.value })}
        />
      </label>
      {(partition !== '' || at !== '') && (
        <button
          type="button"
          onClick={() => {
            setText('');
            setParams({ partition: '', at: '' });
          }}
        >
          Show all
        </button>
      )}
    </form>
  );
}

function Decision({ one }: { one: DecisionRecord }) {
  return (
    <li class={`decision ${one.decision}`}>
      <span class="decision-time">
        <span class="number">{clock(new Date(one.at))}</span>
        <Ago at={one.at} />
      </span>
      <div class="decision-body">
        <p class="decision-head">
          <Badge state={one.decision} />
          <strong class="text">{one.partition_label ?? 'whole table'}</strong>
          <span class="note">
            version {one.version ?? '–'} · {one.action}
            {one.outcome === '' ? '' : ` · ${one.outcome}`}
          </span>
        </p>
        <p class="reason">
          <Sentence text={one.reason_text} />
        </p>
        <p class="note">
          {one.files === null || one.files === undefined ? one.message : one.files > 0 && numbersOf(one)}
          {` ${predictionText(one.predicted)}`}
        </p>
      </div>
    </li>
  );
}

function numbersOf(one: DecisionRecord): string {
  const shortfall = one.mse_bytes2 ?? 0;
  return `${plural(one.files ?? 0, 'file')}, ${exact(one.small_files ?? 0)} small; ${bytes(Math.sqrt(shortfall))} short of the target (root mean square).`;
}
