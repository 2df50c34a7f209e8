// Shares of tenants and tables: what each uses of the slots and of its quota, what waits, and its weight.
import { useState } from 'preact/hooks';
import { api, read } from '../../api/client';
import type { QueueView } from '../../api/schema';
import { mayAdminister, mayOperate } from '../../api/session';
import { never, useResource } from '../../api/use-resource';
import { percent } from '../../format/numbers';
import { duration } from '../../format/times';
import { formatRoute } from '../../navigation/route';
import { Action, useAction } from '../../parts/action';
import { Badge } from '../../parts/badge';
import { Dialog } from '../../parts/dialog';
import { Card, Empty, Loaded } from '../../parts/frame';
import { ACTIONS, type Column, List } from '../../parts/list';
import { Count, Meter } from '../../parts/values';
import { OVERSOLD, parseLimit, type Share, sharesOf } from './shares';

const COLUMNS: Column<Share>[] = [
  { head: 'Slot time', show: one => <Used share={one} /> },
  { head: 'Of quota', show: one => <OfQuota share={one} /> },
  { head: 'Waiting', place: 'right wide-only', show: one => <Count value={one.waiting} /> },
  {
    head: 'Oldest',
    place: 'right wide-only',
    kind: 'number',
    show: one => (one.oldestWaitS === undefined ? '–' : duration(one.oldestWaitS)),
  },
  { head: 'Weight', place: 'right wide-only', kind: 'number', show: one => one.weight },
  {
    head: 'Limit',
    place: 'right wide-only',
    kind: 'number',
    show: one => (one.limit === '' ? 'none' : one.limit),
  },
];

export function Tenants({ group, queue, reload }: { group: string; queue: QueueView; reload: () => void }) {
  return (
    <Card title="Tenants" note={`slot time used in the last ${duration(queue.occupancy_window_s)}`}>
      <ShareList title="Tenant" group={group} shares={sharesOf('tenant', queue)} reload={reload} />
    </Card>
  );
}

/** Slot time by table, read on demand: there may be very many. */
export function TableShares({ group }: { group: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <Card title="Tables by slot time" note="those with jobs, a weight, a limit or a quota">
      {isOpen ? (
        <ReadShares group={group} />
      ) : (
        <button type="button" onClick={() => setOpen(true)}>
          Show tables
        </button>
      )}
    </Card>
  );
}

/** Tables that are listed, those that used most of their quota first. */
const TABLES_SHOWN = 100;

function ReadShares({ group }: { group: string }) {
  const queue = useResource(
    'table shares',
    signal => read(api.GET('/v1/queue', { params: { query: { group, next_claims: 1, by_table: true } }, signal })),
    never,
  );
  return (
    <Loaded of={queue}>
      {found => {
        const shares = sharesOf('table', found).sort(
          (a, b) => (b.ofQuota ?? 0) - (a.ofQuota ?? 0) || (b.used ?? 0) - (a.used ?? 0),
        );
        return <ShareList title="Table" group={group} shares={shares.slice(0, TABLES_SHOWN)} reload={queue.reload} />;
      }}
    </Loaded>
  );
}

interface SharesProps {
  readonly title: string;
  readonly group: string;
  readonly shares: readonly Share[];
  readonly reload: () => void;
}

function ShareList({ title, group, shares, reload }: SharesProps) {
  if (shares.length === 0) return <Empty>{`No ${title.toLowerCase()} has jobs, a weight or a limit.`}</Empty>;
  const name: Column<Share> = { head: title, show: one => <Name share={one} /> };
  const actions: Column<Share> = {
    head: ACTIONS,
    place: 'right',
    show: one => <ShareActions share={one} group={group} reload={reload} />,
  };
  return (
    <List
      label={`${title}s`}
      rows={shares}
      keyOf={one => one.id}
      columns={[name, ...COLUMNS, ...(mayOperate.value ? [actions] : [])]}
    />
  );
}

function Name({ share }: { share: Share }) {
  const to =
    share.scope === 'tenant' ? formatRoute(['tables'], { tenant: share.id }) : formatRoute(['tables', share.id]);
  return (
    <>
      <a href={to}>{share.name}</a> {share.isPaused && <Badge state="paused" />}
    </>
  );
}

function Used({ share }: { share: Share }) {
  if (share.used === undefined) return <span class="missing">–</span>;
  return (
    <span class="metered">
      <Meter value={share.used} tone="busy" />
      <span class="number">{percent(share.used)}</span>
    </span>
  );
}

function OfQuota({ share }: { share: Share }) {
  if (share.ofQuota === undefined) return <span class="missing">–</span>;
  return (
    <>
      <span class="number">{percent(share.ofQuota)}</span> {share.ofQuota > OVERSOLD && <Badge state="oversold" />}
    </>
  );
}

interface ShareProps {
  readonly share: Share;
  readonly group: string;
  readonly reload: () => void;
}

function ShareActions({ share, group, reload }: ShareProps) {
  const [isOpen, setOpen] = useState(false);
  const request = { body: { scope: share.scope, name: share.id }, params: { query: { group } } } as const;
  return (
    <span class="job-actions">
      {share.isPaused ? (
        <Action
          kind="small"
          done={reload}
          run={async () => (await read(api.POST('/v1/queue/resume', request))).message}
        >
          Resume
        </Action>
      ) : (
        <Action kind="small" done={reload} run={async () => (await read(api.POST('/v1/queue/pause', request))).message}>
          Pause
        </Action>
      )}
      {mayAdminister.value && (
        <button type="button" class="small" onClick={() => setOpen(true)}>
          Weight…
        </button>
      )}
      {isOpen && <WeightDialog share={share} group={group} reload={reload} close={() => setOpen(false)} />}
    </span>
  );
}

function WeightDialog({ share, group, reload, close }: ShareProps & { close: () => void }) {
  const [weight, setWeight] = useState(String(share.weight));
  const [limit, setLimit] = useState(share.limit);
  const [isRunning, start] = useAction(
    async () => {
      const body = { scope: share.scope, name: share.id, weight: Number(weight), ...parseLimit(limit) } as const;
      return (await read(api.PUT('/v1/queue/weights', { body, params: { query: { group } } }))).message;
    },
    () => {
      reload();
      close();
    },
  );
  return (
    <Dialog title={`Share of ${share.name}`} onClose={close}>
      <form
        onSubmit={event => {
          event.preventDefault();
          start();
        }}
      >
        <label class="field">
          <span>Weight, 0.01 to 100: its share relative to others</span>
          <input
            type="number"
            min={0.01}
            max={100}
            step="any"
            required
            value={weight}
            onInput={event => setWeight(event.currentTarget.value)}
          />
        </label>
        <label class="field">
          <span>Limit: 25% of the slots, 4 jobs at once, or nothing</span>
          <input value={limit} maxLength={10} onInput={event => setLimit(event.currentTarget.value)} />
        </label>
        <div class="dialog-actions">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={isRunning}>
            Apply
          </button>
        </div>
      </form>
    </Dialog>
  );
}
