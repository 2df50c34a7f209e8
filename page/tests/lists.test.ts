import { describe, expect, test } from 'vitest';
import type { TableRows, TableRowView } from '../src/api/schema';
import { pagesOf, visibleRange } from '../src/parts/visible-range';
import { filterOfAddress, nextOrder } from '../src/views/tables/filter-of-address';
import { PAGE_ROWS, TablePages } from '../src/views/tables/table-pages';

describe('the rows on the screen', () => {
  test('begin and end some rows beyond its edges, and never beyond the list', () => {
    expect(visibleRange(0, 440, 44, 100_000)).toEqual({ first: 0, last: 22 });
    const middle = visibleRange(2_200_000, 440, 44, 100_000);
    expect(middle.first).toBeLessThan(50_000);
    expect(middle.last).toBeGreaterThan(50_010);
    expect(visibleRange(4_400_000, 440, 44, 100_000).last).toBe(100_000);
    expect(visibleRange(4_400_000, 440, 44, 3)).toEqual({ first: 3, last: 3 });
  });

  test('touch each of their pages once', () => {
    expect(pagesOf({ first: 90, last: 210 }, 100)).toEqual([0, 1, 2]);
    expect(pagesOf({ first: 100, last: 200 }, 100)).toEqual([1]);
    expect(pagesOf({ first: 3, last: 3 }, 100)).toEqual([]);
  });
});

describe('pages that were read', () => {
  const page = (offset: number): TableRows =>
    ({ offset, rows: [{ name: `table-${offset}` } as TableRowView] }) as unknown as TableRows;

  test('are found by the position of a row; others are absent', () => {
    const pages = new TablePages();
    pages.put(page(2 * PAGE_ROWS));
    expect(pages.row(2 * PAGE_ROWS)?.name).toBe(`table-${2 * PAGE_ROWS}`);
    expect(pages.row(0)).toBeUndefined();
  });

  test('are bounded in number', () => {
    const pages = new TablePages();
    for (let index = 0; index < 200; index += 1) pages.put(page(index * PAGE_ROWS));
    expect(pages.has(0)).toBe(false);
    expect(pages.has(199)).toBe(true);
    pages.keepOnly([199]);
    expect(pages.has(198)).toBe(false);
  });
});

describe('the filter', () => {
  test('of a hand-written address is one that the API accepts', () => {
    expect(filterOfAddress({ condition: 'burning', sort: 'color', search: 'x' })).toEqual({
      search: 'x',
      tenant: '',
      group: '',
      condition: '',
      sort: 'name',
      descending: false,
    });
  });

  test('sorts figures from the largest, names from the first, and turns at the second click', () => {
    const filter = filterOfAddress({});
    expect(nextOrder(filter, 'files')).toEqual({ sort: 'files', order: 'descending' });
    expect(nextOrder({ ...filter, sort: 'files', descending: true }, 'files').order).toBe('ascending');
    expect(nextOrder({ ...filter, sort: 'files', descending: true }, 'name').order).toBe('ascending');
  });
});
