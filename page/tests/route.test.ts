import { describe, expect, test } from 'vitest';
import { formatRoute, parseRoute } from '../src/navigation/route';

describe('an address', () => {
  test.each([
    ['', [], {}],
    ['#/', [], {}],
    ['#/tables', ['tables'], {}],
    ['#/tables/sales.orders?tab=decisions', ['tables', 'sales.orders'], { tab: 'decisions' }],
    ['#/tables/a%2Fb', ['tables', 'a/b'], {}],
    ['#/tables/50%', ['tables', '50%'], {}],
  ])('%s is read', (hash, path, params) => {
    expect(parseRoute(hash)).toEqual({ path, params });
  });

  test('is read as it was written, whatever a name contains', () => {
    for (const name of ['a/b', 'ü ?&=#', '<img>', '\u202Edrow']) {
      const params = { partition: name, at: '2026-01-01T14:03' };
      expect(parseRoute(formatRoute(['tables', name], params))).toEqual({ path: ['tables', name], params });
    }
  });

  test('leaves empty parameters out', () => {
    expect(formatRoute(['tables'], { search: '', tenant: 'a' })).toBe('#/tables?tenant=a');
  });
});
