// One row of the list of tables; a row that was not read yet keeps its space.
import type { TableRowView } from '../../api/schema';
import { formatRoute } from '../../navigation/route';
import { Badge } from '../../parts/badge';
import { Ago, Bytes, Compactness, Count } from '../../parts/values';

interface RowProps {
  readonly index: number;
  readonly row: TableRowView | undefined;
  readonly showsGroup: boolean;
}

export function TableRow({ index, row, showsGroup }: RowProps) {
  if (row === undefined) {
    return (
      <div role="row" class="table-row unread-row" aria-rowindex={index + 2}>
        <span role="cell" class="name">
          …
        </span>
      </div>
    );
  }
  return (
    <div role="row" class="table-row" aria-rowindex={index + 2}>
      <span role="cell" class={showsGroup ? 'name stacked' : 'name'}>
        <a href={formatRoute(['tables', row.name])} title={row.name}>
          {row.name}
        </a>
        <Belonging row={row} showsGroup={showsGroup} />
      </span>
      <span role="cell" class="state">
        <Badge state={row.condition} title={row.refusal?.reason ?? ''} />
      </span>
      <span role="cell" class={row.files === 1 ? 'right files one' : 'right files'}>
        <Count value={row.files} />
      </span>
      <span role="cell" class="right small">
        <Count value={row.small_files} />
      </span>
      <span role="cell" class="right size">
        <Bytes value={row.bytes} />
      </span>
      <span role="cell" class="layout-column">
        <Compactness files={row.files} needed={row.files_needed} excess={row.excess_ratio} />
      </span>
      <span role="cell" class="right committed">
        <Ago at={row.committed_at} />
      </span>
      <span role="cell" class="right rewritten">
        <Ago at={row.rewritten_at} />
      </span>
      <span role="cell" class="right jobs">
        <Count value={row.jobs_waiting + row.jobs_running} />
      </span>
    </div>
  );
}

function Belonging({ row, showsGroup }: { row: TableRowView; showsGroup: boolean }) {
  const isShown = showsGroup && row.group !== null;
  return (
    <span class="tenant" title={`tenant ${row.tenant}${isShown ? `, group ${row.group}` : ''}`}>
      <span class="its-tenant">
        {row.tenant}
        {isShown && ' · '}
      </span>
      {isShown && row.group}
    </span>
  );
}
