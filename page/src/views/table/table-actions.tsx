// What an operator can do with a table: optimize it now, pause it, and turn its optimization off.
import { useState } from 'preact/hooks';
import { api, read } from '../../api/client';
import type { TableStatus } from '../../api/schema';
import { mayAdminister } from '../../api/session';
import { Action } from '../../parts/action';
import { OptimizeDialog } from './optimize-dialog';
import { isEnabled } from './table-view';

const ENABLED = 'lakewright.enabled';

export function TableActions({ table, reload }: { table: TableStatus; reload: () => void }) {
  const [isOptimizing, setOptimizing] = useState(false);
  const path = { name: table.name };
  const enabled = isEnabled(table);
  return (
    <>
      <button type="button" class="primary" onClick={() => setOptimizing(true)}>
        Optimize…
      </button>
      {table.paused ? (
        <Action
          done={reload}
          run={async () => (await read(api.POST('/v1/tables/{name}/resume', { params: { path } }))).message}
        >
          Resume
        </Action>
      ) : (
        <Action
          done={reload}
          run={async () => (await read(api.POST('/v1/tables/{name}/pause', { params: { path } }))).message}
        >
          Pause
        </Action>
      )}
      <Action
        done={reload}
        confirm={
          enabled
            ? `Disable ${table.name}? Waiting jobs are cancelled, and no new ones are made until it is enabled again.`
            : `Enable ${table.name}? Eligible partitions are queued at once.`
        }
        run={async () => {
          await read(
            api.PATCH('/v1/tables/{name}', { params: { path }, body: { properties: switched(table, !enabled) } }),
          );
          return `Table ${table.name} is ${enabled ? 'disabled' : 'enabled'}.`;
        }}
      >
        {enabled ? 'Disable' : 'Enable'}
      </Action>
      {mayAdminister.value && (
        <Action
          kind="danger"
          confirm={`Unregister ${table.name}? Its jobs are cancelled and its state is deleted; the table's data is not touched.`}
          run={async () => {
            await read(api.DELETE('/v1/tables/{name}', { params: { path } }));
            location.hash = '#/tables';
            return `Table ${table.name} is unregistered; its data was not touched.`;
          }}
        >
          Unregister
        </Action>
      )}
      {isOptimizing && <OptimizeDialog table={table} close={() => setOptimizing(false)} />}
    </>
  );
}

/** The overrides of the registration with optimization turned on or off. */
function switched(table: TableStatus, enabled: boolean): Record<string, string> {
  return { ...table.properties, [ENABLED]: String(enabled) };
}
