// Optimize now: first the plan of a dry run, with the layout before and after; then the jobs.
import { useEffect, useState } from 'preact/hooks';
import { api, read, sentence } from '../../api/client';
import type { OptimizePlan, OptimizeRequest, OptimizeResponse, TableStatus } from '../../api/schema';
import { plural } from '../../format/numbers';
import { useAction } from '../../parts/action';
import { Dialog } from '../../parts/dialog';
import { Histogram } from '../../parts/histogram';
import { type Column, List } from '../../parts/list';
import { Bytes, Count, Sentence } from '../../parts/values';
import { addedLevels } from './layout-sums';

const PLANS_SHOWN = 50;

type Mode = OptimizeRequest['mode'];

const MODES: readonly [Mode, string][] = [
  ['levels', 'levels: merges that are due'],
  ['idle', 'idle: all small files'],
  ['full', 'full: all that are not full'],
];

export function OptimizeDialog({ table, close }: { table: TableStatus; close: () => void }) {
  const [partitions, setPartitions] = useState('');
  const [mode, setMode] = useState<Mode>('levels');
  const [force, setForce] = useState(false);
  const [plan, setPlan] = useState<OptimizePlan | null>(null);
  const [problem, setProblem] = useState('');
  const [isPlanning, setPlanning] = useState(false);
  const request = (dry_run: boolean): OptimizeRequest => ({
    actions: [],
    mode,
    values: {},
    partitions: partitions
      .split('\n')
      .map(one => one.trim())
      .filter(one => one !== ''),
    priority: 'urgent',
    dry_run,
    force,
  });
  const send = (dry_run: boolean) =>
    read(api.POST('/v1/tables/{name}/optimize', { params: { path: { name: table.name } }, body: request(dry_run) }));
  const dryRun = () => {
    setPlanning(true);
    setProblem('');
    send(true)
      .then(found => setPlan(found as OptimizePlan))
      .catch((failure: unknown) => setProblem(sentence(failure)))
      .finally(() => setPlanning(false));
  };
  useEffect(dryRun, []);
  const [isRunning, start] = useAction(async () => {
    const made = (await send(false)) as OptimizeResponse;
    return made.ignored === null ? `${table.name}: ${made.message}` : made.message;
  }, close);
  return (
    <Dialog title={`Optimize ${table.name}`} onClose={close} wide>
      <form
        onSubmit={event => {
          event.preventDefault();
          dryRun();
        }}
      >
        <div class="form-row">
          <label class="field grow">
            <span>Partitions, one per line; empty: the whole table</span>
            <textarea
              rows={2}
              placeholder="dt=2026-01-01"
              value={partitions}
              onInput={event => {
                setPartitions(event.currentTarget.value);
                setPlan(null);
              }}
            />
          </label>
          <label class="field">
            <span>Mode</span>
            <select
              value={mode}
              onChange={event => {
                setMode(event.currentTarget.value as Mode);
                setPlan(null);
              }}
            >
              {MODES.map(([name, text]) => (
                <option key={name} value={name}>
                  {text}
                </option>
              ))}
            </select>
          </label>
          <label class="check">
            <input
              type="checkbox"
              checked={force}
              onChange={event => {
                setForce(event.currentTarget.checked);
                setPlan(null);
              }}
            />
            <span>Ignore the tolerance</span>
          </label>
        </div>
        {problem !== '' && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        {plan !== null && <Plan plan={plan} />}
        <div class="dialog-actions">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class={plan === null ? 'primary' : ''} disabled={isPlanning}>
            {isPlanning ? 'Planning…' : 'Dry run'}
          </button>
          {plan !== null && plan.partitions > 0 && (
            <button type="button" class="primary" disabled={isRunning} onClick={start}>
              Rewrite {plural(plan.partitions, 'partition')}
            </button>
          )}
        </div>
      </form>
    </Dialog>
  );
}

const COLUMNS: Column<OptimizePlan['plans'][number]>[] = [
  { head: 'Partition', kind: 'text', show: one => one.partition_label },
  { head: 'Files replaced', place: 'right', show: one => <Count value={one.files_replaced} /> },
  {
    head: 'Files written',
    place: 'right',
    show: one => <Count value={one.files_replaced - one.files_removed} />,
  },
  { head: 'Bytes', place: 'right', show: one => <Bytes value={one.bytes} /> },
];

function Plan({ plan }: { plan: OptimizePlan }) {
  return (
    <>
      <p class="plan-sentence">
        <Sentence text={plan.message} />
      </p>
      {plan.plans.length > 0 && (
        <>
          <Histogram
            bars={addedLevels(plan.plans)}
            now="now, in these partitions"
            after="after the rewrite (predicted)"
          />
          <List
            label="Plan by partition"
            region="plans"
            rows={plan.plans.slice(0, PLANS_SHOWN)}
            keyOf={one => `${one.partition_key} ${one.action}`}
            columns={COLUMNS}
          />
        </>
      )}
    </>
  );
}
