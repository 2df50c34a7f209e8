import { describe, expect, test } from 'vitest';
import type { DeciderStatus, FleetHistoryView, LayoutPointView } from '../src/api/schema';
import { perHour } from '../src/format/per-hour';
import { workDone } from '../src/views/overview/work-done';
import { parseLimit, sharesOf } from '../src/views/queue/shares';
import { alignedCurves } from '../src/views/table/aligned-curves';
import { ascendingTimes, mergedPoints } from '../src/views/table/layout-points';
import { formatProperties, parseProperties } from '../src/views/table/properties-text';
import { shadeOf } from '../src/views/table/shades';

describe('properties', () => {
  test('are lines of text; a short name is one of Lakewright', () => {
    const text = 'fan-in = 4\n\n delta.appendOnly=true \nlakewright.filter = dt >= "2026"';
    const found = { 'lakewright.fan-in': '4', 'delta.appendOnly': 'true', 'lakewright.filter': 'dt >= "2026"' };
    expect(parseProperties(text)).toEqual(found);
    expect(parseProperties(formatProperties(found))).toEqual(found);
  });

  test('without a value are refused with the line', () => {
    expect(() => parseProperties('fan-in')).toThrow('fan-in: write name = value');
    expect(() => parseProperties('= 4')).toThrow();
  });
});

describe('history', () => {
  const at = (minute: number, bytes: number) => ({
    at: `2026-01-01T00:${String(minute).padStart(2, '0')}:00Z`,
    bytes_added: bytes,
    bytes_replaced: 0,
  });

  test('shows the growth per hour, and none where a counter began again', () => {
    expect(perHour([at(0, 10), at(30, 20), at(30, 25), at(45, 5)], 'bytes_added')).toEqual([null, 20, null, null]);
    expect(perHour([], 'bytes_added')).toEqual([]);
    const used = [0, 0.5].map((core_s, hour) => ({ at: new Date(3_600_000 * hour).toISOString(), core_s }));
    expect(perHour(used, 'core_s')).toEqual([null, 0.5]);
  });

  test('of a day counts up to now, not to the last sample', () => {
    const status = {
      funnel: { commits: 98, rewrites: 12, files_replaced: 138, files_written: 15, bytes_replaced: 2048 },
      savings: { amplification: { steady_write_amplification: null } },
    } as unknown as DeciderStatus;
    const none = { rewrites: 0, files_replaced: 0, files_written: 0, bytes_replaced: 0 };
    const first = (commits: number) => {
      const point = { at: '2026-01-01T00:00:00Z', commits, ...none };
      return { points: [point, point], used: { core_s: 90, cost: null } } as unknown as FleetHistoryView;
    };
    const noon = Date.parse('2026-01-01T12:00:00Z');
    expect(workDone(status, first(8), noon)).toEqual([
      '138 files became 15.',
      'In the last 12 h: 90 commits followed, 12 rewrites, 2 KiB read, for 1 min 30 s of core time.',
    ]);
    expect(workDone(status, first(500), noon)[1]).toContain('Since the start: 98 commits');
    expect(workDone({ ...status, funnel: {} }, undefined, noon)[0]).toBe('No rewrite yet.');
    const unused = { ...first(8), used: { core_s: 0, cost: null } } as unknown as FleetHistoryView;
    expect(workDone(status, unused, noon)[1]).not.toContain('core time'); // of the newest sample, a minute old
  });
});

describe('shares', () => {
  const queue = {
    tenants: { sales: 3 },
    tables: {},
    table_names: { t: 'sales.orders' },
    oldest_waits_s: { tenants: { sales: 12 } },
    occupancy: { tenants: { web: 0.4 } },
    quota_occupation: { tenants: { web: 1.6 }, tables: { t: 0.9 } },
    settings: {
      'limit:tenant|web': '!25%',
      'weight:tenant|sales': '2',
      'limit:table|t': '2',
      'limit:table|found': '!',
      paused: 'all',
    },
  };

  test('come from jobs, use and settings together', () => {
    const [sales, web] = sharesOf('tenant', queue);
    expect(sales).toMatchObject({ name: 'sales', waiting: 3, weight: 2, limit: '', isPaused: false });
    expect(web).toMatchObject({ name: 'web', waiting: 0, used: 0.4, ofQuota: 1.6, limit: '25%', isPaused: true });
  });

  test('of tables are those with a weight or a limit, and not all that are paused', () => {
    expect(sharesOf('table', queue)).toEqual([
      expect.objectContaining({ id: 't', name: 'sales.orders', limit: '2', ofQuota: 0.9 }),
    ]);
  });

  test('have a limit in jobs, a share, or none', () => {
    expect([parseLimit('25%'), parseLimit(' 4 '), parseLimit('')]).toEqual([
      { quota_percent: 25 },
      { limit: 4 },
      { limit: 0 },
    ]);
    expect(() => parseLimit('many')).toThrow();
    expect(() => parseLimit('-1')).toThrow();
  });
});

describe('charts', () => {
  test('curves of different times share one axis and hold their values', () => {
    const { times, values } = alignedCurves([
      [
        [10, 1],
        [30, 3],
      ],
      [[20, 7]],
    ]);
    expect(times).toEqual([10, 20, 30]);
    expect(values).toEqual([
      [1, 1, 3],
      [null, 7, 7],
    ]);
  });

  test('a chart grows by newer points, and a version that is read again replaces the earlier reading', () => {
    const point = (version: number, files: number) => ({ version, files }) as LayoutPointView;
    const merged = mergedPoints([point(1, 1), point(2, 2)], [point(2, 5), point(3, 6)], 2);
    expect(merged.map(one => [one.version, one.files])).toEqual([
      [2, 5],
      [3, 6],
    ]);
    expect(mergedPoints([point(1, 1)], [], 9)).toHaveLength(1);
  });

  test('times never go back, whatever the clocks of writers show', () => {
    const at = ['2026-01-01T00:00:10Z', '2026-01-01T00:00:05Z', null, '2026-01-01T00:00:20Z'];
    const seconds = ascendingTimes(at.map(one => ({ at: one })));
    expect(seconds.map(one => one - (seconds[0] ?? 0))).toEqual([0, 0, 0, 10]);
  });

  test('shades are seven steps', () =>
    expect([shadeOf(0), shadeOf(0.5), shadeOf(1), shadeOf(2)]).toEqual([0, 3, 6, 6]));
});
