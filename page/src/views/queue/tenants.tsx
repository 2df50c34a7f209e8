// Shares of tenants: what each uses of the slots against its quota, what waits, and its weight.
import { useState } from 'preact/hooks';
import { api, read } from '../../api/client';
import type { QueueView } from '../../api/schema';
import { mayAdminister, mayOperate } from '../../api/session';
import { percent } from '../../format/numbers';
import { duration } from '../../format/times';
import { formatRoute } from '../../navigation/route';
import { Action, useAction } from '../../parts/action';
import { Badge } from '../../parts/badge';
import { Dialog } from '../../parts/dialog';
import { Card, Empty } from '../../parts/frame';
import { ACTIONS, type Column, List } from '../../parts/list';
import { Count, Meter } from '../../parts/values';
import { parseLimit, quotaShare, type TenantShare, tenantShares } from './tenant-shares';

const COLUMNS: Column<TenantShare>[] = [
  {
    head: 'Tenant',
    show: one => (
      <>
        <a href={formatRoute(['tables'], { tenant: one.name })}>{one.name}</a>{' '}
        {one.isPaused && <Badge state="paused" />}
      </>
    ),
  },
  { head: 'Slot time', show: one => <Used share={one} /> },
  { head: 'Waiting', place: 'right', show: one => <Count value={one.waiting} /> },
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

export function Tenants({ queue, reload }: { queue: QueueView; reload: () => void }) {
  const tenants = tenantShares(queue);
  const actions: Column<TenantShare> = {
    head: ACTIONS,
    place: 'right',
    show: one => <TenantActions share={one} reload={reload} />,
  };
  return (
    <Card title="Tenants" note={`slot time used in the last ${duration(queue.occupancy_window_s)}`}>
      {tenants.length === 0 ? (
        <Empty>No tenant has jobs.</Empty>
      ) : (
        <List
          label="Tenants"
          rows={tenants}
          keyOf={one => one.name}
          columns={mayOperate.value ? [...COLUMNS, actions] : COLUMNS}
        />
      )}
    </Card>
  );
}

function Used({ share }: { share: TenantShare }) {
  if (share.used === undefined) return <span class="missing">–</span>;
  const quota = quotaShare(share.limit);
  const isAtQuota = quota !== undefined && share.used >= quota;
  const label = quota === undefined ? percent(share.used) : `${percent(share.used)} of ${percent(quota)}`;
  return (
    <span class="metered">
      <Meter value={quota === undefined ? share.used : share.used / quota} tone={isAtQuota ? 'poor' : 'busy'} />
      <span class="number">{label}</span>
    </span>
  );
}

function TenantActions({ share, reload }: { share: TenantShare; reload: () => void }) {
  const [isOpen, setOpen] = useState(false);
  const body = { scope: 'tenant', name: share.name } as const;
  return (
    <span class="job-actions">
      {share.isPaused ? (
        <Action
          kind="small"
          done={reload}
          run={async () => (await read(api.POST('/v1/queue/resume', { body }))).message}
        >
          Resume
        </Action>
      ) : (
        <Action
          kind="small"
          done={reload}
          run={async () => (await read(api.POST('/v1/queue/pause', { body }))).message}
        >
          Pause
        </Action>
      )}
      {mayAdminister.value && (
        <button type="button" class="small" onClick={() => setOpen(true)}>
          Weight…
        </button>
      )}
      {isOpen && <WeightDialog share={share} reload={reload} close={() => setOpen(false)} />}
    </span>
  );
}

function WeightDialog({ share, reload, close }: { share: TenantShare; reload: () => void; close: () => void }) {
  const [weight, setWeight] = useState(String(share.weight));
  const [limit, setLimit] = useState(share.limit);
  const [isRunning, start] = useAction(
    async () => {
      const body = { scope: 'tenant', name: share.name, weight: Number(weight), ...parseLimit(limit) } as const;
      return (await read(api.PUT('/v1/queue/weights', { body }))).message;
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
          <span>Weight, 0.01 to 100: its share relative to other tenants</span>
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
