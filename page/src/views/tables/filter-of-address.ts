// The filter of the list of tables, read from the address, so that a filtered list can be linked.
import type { TableCondition, TableSort } from '../../api/schema';
import type { TableFilter } from './use-table-rows';

const CONDITIONS: readonly TableCondition[] = [
  'refused',
  'unread',
  'failing',
  'invalid_properties',
  'disabled',
  'paused',
  'running',
  'waiting',
  'outside_window',
  'over_budget',
  'backing_off',
  'not_due',
  'compact',
];

const SORTS: readonly TableSort[] = [
  'name',
  'tenant',
  'files',
  'small_files',
  'bytes',
  'excess',
  'last_commit',
  'last_rewrite',
  'backlog',
  'condition',
];

export function filterOfAddress(params: Readonly<Record<string, string>>): TableFilter {
  return {
    search: params['search'] ?? '',
    tenant: params['tenant'] ?? '',
    group: params['group'] ?? '',
    condition: CONDITIONS.find(one => one === params['condition']) ?? '',
    sort: SORTS.find(one => one === params['sort']) ?? 'name',
    descending: params['order'] === 'descending',
  };
}

/** The order after a click on a column: figures begin with the largest, names with the first. */
export function nextOrder(filter: TableFilter, sort: TableSort): { sort: string; order: string } {
  const isText = sort === 'name' || sort === 'tenant' || sort === 'condition';
  const descending = filter.sort === sort ? !filter.descending : !isText;
  return { sort, order: descending ? 'descending' : 'ascending' };
}
