// Tables: all of them, searched, filtered and sorted by the decider; the state of the list is in the address.
import { useEffect, useState } from 'preact/hooks';
import type { TableRows, TableSort } from '../../api/schema';
import { mayOperate } from '../../api/session';
import { count, plural } from '../../format/numbers';
import { route, setParams } from '../../navigation/route';
import { Empty, Head } from '../../parts/frame';
import { GroupChoice } from '../../parts/group-choice';
import { VirtualList } from '../../parts/virtual-list';
import { filterOfAddress, nextOrder } from './filter-of-address';
import { Register } from './register';
import { TableRow } from './table-row';
import { type TableFilter, useTableRows } from './use-table-rows';

const COLUMNS: readonly (readonly [TableSort, string, string])[] = [
  ['name', 'Table', 'name'],
  ['condition', 'State', ''],
  ['files', 'Files', 'right'],
  ['small_files', 'Small', 'right'],
  ['bytes', 'Size', 'right'],
  ['excess', 'To gain', ''],
  ['last_commit', 'Last commit', 'right'],
  ['last_rewrite', 'Last rewrite', 'right'],
  ['backlog', 'Jobs', 'right'],
];

const ROW_PX = 44;
const PHONE_ROW_PX = 78;
const PHONE = matchMedia('(max-width: 760px)');

/** Pause in typing after which the search begins. */
const TYPING_MS = 200;

export function TablesView() {
  const filter = filterOfAddress(route.value.params);
  const shown = useTableRows(filter);
  const isPhone = usePhone();
  const total = shown.summary?.matching ?? 0;
  const groups = Object.keys(shown.summary?.groups ?? {});
  return (
    <div class="fill">
      <Head title="Tables" sub={subtitle(shown.summary)}>
        {mayOperate.value && <Register done={shown.reload} />}
      </Head>
      <Filters filter={filter} summary={shown.summary} groups={groups} />
      {shown.problem !== '' && (
        <p class="problem" role="alert">
          {shown.problem}
        </p>
      )}
      {shown.summary !== undefined && total === 0 ? (
        <Empty>{shown.summary.total === 0 ? 'No table is registered.' : 'No table matches.'}</Empty>
      ) : (
        <VirtualList
          total={total}
          rowHeight={isPhone ? PHONE_ROW_PX : ROW_PX}
          label="Tables"
          columns={COLUMNS.length}
          onRange={shown.onRange}
          head={<HeadRow filter={filter} />}
          row={index => (
            <TableRow key={index} index={index} row={shown.pages.row(index)} showsGroup={groups.length > 1} />
          )}
        />
      )}
    </div>
  );
}

function subtitle(summary: TableRows | undefined): string {
  if (summary === undefined) return 'Loading…';
  const found = summary.matching === summary.total ? '' : `${count(summary.matching)} of `;
  return `${found}${plural(summary.total, 'table')}${summary.complete ? '' : ' · reading their figures…'}`;
}

function usePhone(): boolean {
  const [isPhone, setPhone] = useState(PHONE.matches);
  useEffect(() => {
    const read = () => setPhone(PHONE.matches);
    PHONE.addEventListener('change', read);
    return () => PHONE.removeEventListener('change', read);
  }, []);
  return isPhone;
}

function HeadRow({ filter }: { filter: TableFilter }) {
  return (
    <div role="rowgroup" class="virtual-head">
      <div role="row" class="table-row head-row">
        {COLUMNS.map(([sort, title, kind]) => (
          <span
            key={sort}
            role="columnheader"
            class={kind}
            aria-sort={filter.sort === sort ? (filter.descending ? 'descending' : 'ascending') : 'none'}
          >
            <button type="button" class="sort" onClick={() => setParams(nextOrder(filter, sort))}>
              {title}
              <span aria-hidden="true">{filter.sort === sort ? (filter.descending ? ' ↓' : ' ↑') : ''}</span>
            </button>
          </span>
        ))}
      </div>
    </div>
  );
}

interface FilterProps {
  readonly filter: TableFilter;
  readonly summary: TableRows | undefined;
  readonly groups: readonly string[];
}

function Filters({ filter, summary, groups }: FilterProps) {
  const [text, setText] = useState(filter.search);
  useEffect(() => {
    const timer = setTimeout(() => {
      if (text !== filterOfAddress(route.value.params).search) setParams({ search: text });
    }, TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  const tenants = Object.entries(summary?.tenants ?? {});
  const conditions = Object.entries(summary?.conditions ?? {});
  return (
    <div class="filters">
      <input
        type="search"
        placeholder="Search tables and tenants"
        aria-label="Search tables and tenants"
        maxLength={200}
        value={text}
        onInput={event => setText(event.currentTarget.value)}
      />
      <select
        aria-label="State"
        value={filter.condition}
        onChange={event => setParams({ condition: event.currentTarget.value })}
      >
        <option value="">Every state</option>
        {options(conditions, filter.condition).map(([name, tables]) => (
          <option key={name} value={name}>{`${name.replaceAll('_', ' ')} (${count(tables)})`}</option>
        ))}
      </select>
      <select
        aria-label="Tenant"
        value={filter.tenant}
        onChange={event => setParams({ tenant: event.currentTarget.value })}
      >
        <option value="">Every tenant</option>
        {options(tenants, filter.tenant).map(([name, tables]) => (
          <option key={name} value={name}>{`${name} (${count(tables)})`}</option>
        ))}
      </select>
      <GroupChoice groups={groups} />
      <label class="sort-choice">
        <span>Sort by</span>
        <select
          value={filter.sort}
          onChange={event => setParams(nextOrder({ ...filter, sort: 'name' }, event.currentTarget.value as TableSort))}
        >
          {COLUMNS.map(([sort, title]) => (
            <option key={sort} value={sort}>
              {title}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}

/** Choices with their counts; the one in effect is there even if it selects nothing now. */
function options(found: readonly [string, number][], chosen: string): readonly (readonly [string, number])[] {
  return chosen === '' || found.some(([name]) => name === chosen) ? found : [[chosen, 0], ...found];
}
