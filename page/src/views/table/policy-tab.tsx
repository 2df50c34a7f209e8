// Policy: each value in effect and where it is set; an operator can change the overrides of the registration.
import { useState } from 'preact/hooks';
import { api, read } from '../../api/client';
import type { PolicyValue, TableStatus } from '../../api/schema';
import { mayOperate } from '../../api/session';
import { bytes, exact, plural } from '../../format/numbers';
import { duration } from '../../format/times';
import { useAction } from '../../parts/action';
import { Badge } from '../../parts/badge';
import { Card } from '../../parts/frame';
import { type Column, List } from '../../parts/list';
import { formatProperties, parseProperties } from './properties-text';

const LOCAL = 'default';

/** Units that a number carries by itself. */
const NUMBERS = new Set(['', 'ratio', 'share']);

const COLUMNS: Column<PolicyValue>[] = [
  {
    head: 'Property',
    kind: 'property',
    title: one => one.description,
    show: one => (
      <>
        <code>{one.property}</code>
        <span class="note block">{one.description}</span>
      </>
    ),
  },
  { head: 'Value', place: 'right', kind: 'number', title: one => String(one.value), show: valueText },
  { head: 'Set by', show: one => (one.source === LOCAL ? 'default' : <SetBy one={one} />) },
];

export function PolicyTab({ table, reload }: { table: TableStatus; reload: () => void }) {
  const { policy } = table;
  const defaults = policy.values.filter(one => one.source === LOCAL);
  const others = policy.values.filter(one => one.source !== LOCAL);
  return (
    <>
      {policy.issues.map(issue => (
        <p key={issue.property} class="problem" role="alert">
          <code>{issue.property}</code> = <code>{issue.value}</code>: {issue.reason}
          {issue.blocking ? ' The last valid policy stays in effect.' : ' The property is ignored.'}
        </p>
      ))}
      {policy.notes.map(note => (
        <p key={note} class="note">
          {note}
        </p>
      ))}
      <div class="columns policy">
        <Card title="Policy in effect" note={`digest ${policy.version}`}>
          {others.length > 0 && <Values label="Values that are set" values={others} />}
          <details open={others.length === 0}>
            <summary>{plural(defaults.length, 'default')}</summary>
            <Values label="Defaults" values={defaults} />
          </details>
        </Card>
        <Overrides table={table} reload={reload} />
      </div>
    </>
  );
}

function Values({ label, values }: { label: string; values: readonly PolicyValue[] }) {
  return (
    <List
      label={label}
      rows={values}
      keyOf={one => one.property}
      columns={COLUMNS}
      rowClass={one => (one.source === LOCAL ? 'faint' : '')}
    />
  );
}

function SetBy({ one }: { one: PolicyValue }) {
  return (
    <>
      <Badge state={one.source === 'request' ? 'registration' : one.source} />
      {one.set_by !== one.property && <span class="note block wide-only">{one.set_by}</span>}
    </>
  );
}

function valueText({ value, unit }: PolicyValue): string {
  if (value === null || value === '') return unit === '' ? 'none' : 'off';
  if (typeof value === 'number') {
    if (unit === 'bytes') return bytes(value);
    if (unit === 'seconds') return duration(value);
    return `${Number.isInteger(value) ? exact(value) : String(value)}${NUMBERS.has(unit) ? '' : ` ${unit}`}`;
  }
  return String(value);
}

function Overrides({ table, reload }: { table: TableStatus; reload: () => void }) {
  const kept = formatProperties(table.properties);
  const [text, setText] = useState<string | null>(null);
  const [isRunning, start] = useAction(
    async () => {
      const properties = parseProperties(text ?? kept);
      await read(api.PATCH('/v1/tables/{name}', { params: { path: { name: table.name } }, body: { properties } }));
      return `The overrides of ${table.name} are changed.`;
    },
    () => {
      setText(null);
      reload();
    },
  );
  return (
    <Card title="Overrides of the registration" note="take precedence over the table's own properties">
      {mayOperate.value ? (
        <form
          onSubmit={event => {
            event.preventDefault();
            start();
          }}
        >
          <label class="field">
            <span>One property per line: name = value</span>
            <textarea
              rows={6}
              spellcheck={false}
              placeholder="lakewright.target-file-size = 256mb"
              value={text ?? kept}
              onInput={event => setText(event.currentTarget.value)}
            />
          </label>
          <div class="dialog-actions">
            <button type="submit" class="primary" disabled={isRunning || text === null || text === kept}>
              Apply
            </button>
          </div>
        </form>
      ) : (
        <pre class="block">{kept === '' ? 'No overrides.' : kept}</pre>
      )}
    </Card>
  );
}
