// Registers a table: the location is read first, so that a mistake is reported before anything is kept.
import { useState } from 'preact/hooks';
import { api, read } from '../../api/client';
import type { TableRegistration } from '../../api/schema';
import { formatRoute } from '../../navigation/route';
import { useAction } from '../../parts/action';
import { Dialog } from '../../parts/dialog';

const WAIT_S = 10;

export function Register({ done }: { done: () => void }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" class="primary" onClick={() => setOpen(true)}>
        Register a table
      </button>
      {isOpen && <RegisterDialog done={done} close={() => setOpen(false)} />}
    </>
  );
}

function RegisterDialog({ done, close }: { done: () => void; close: () => void }) {
  const [address, setAddress] = useState('');
  const [name, setName] = useState('');
  const [tenant, setTenant] = useState('');
  const [paused, setPaused] = useState(true);
  const [isRunning, start] = useAction(
    async () => {
      const body: TableRegistration = { location: address.trim(), paused, wait_s: WAIT_S, properties: {} };
      if (name.trim() !== '') body.name = name.trim();
      if (tenant.trim() !== '') body.tenant = tenant.trim();
      const table = await read(api.POST('/v1/tables', { body }));
      location.hash = formatRoute(['tables', table.name]);
      return `Table ${table.name} is registered${paused ? ' and paused' : ''}.`;
    },
    () => {
      done();
      close();
    },
  );
  return (
    <Dialog title="Register a table" onClose={close}>
      <form
        onSubmit={event => {
          event.preventDefault();
          start();
        }}
      >
        <label class="field">
          <span>Location</span>
          <input
            required
            maxLength={2048}
            placeholder="s3://lake/sales/orders or /data/lake/orders"
            value={address}
            onInput={event => setAddress(event.currentTarget.value)}
          />
        </label>
        <label class="field">
          <span>Name (optional)</span>
          <input
            maxLength={520}
            placeholder="sales.orders"
            value={name}
            onInput={event => setName(event.currentTarget.value)}
          />
        </label>
        <label class="field">
          <span>Tenant (optional)</span>
          <input maxLength={100} value={tenant} onInput={event => setTenant(event.currentTarget.value)} />
        </label>
        <label class="check">
          <input type="checkbox" checked={paused} onChange={event => setPaused(event.currentTarget.checked)} />
          <span>Paused: jobs wait until the table is resumed, so that a dry run can come first</span>
        </label>
        <div class="dialog-actions">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={isRunning}>
            {isRunning ? 'Reading the table…' : 'Register'}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
