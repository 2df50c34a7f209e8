import { describe, expect, test } from 'vitest';
import type { TableRowView, WhatIfResponse } from '../src/api/schema';
import { adviceOf, identity, ranked } from '../src/views/advice/ranking';

function advice(
  name: string,
  now: number,
  then: number,
  properties: Record<string, string> = { 'lakewright.fan-in': '4' },
) {
  const isChange = Object.keys(properties).length > 0;
  return adviceOf(
    { id: name, name } as TableRowView,
    {
      recommendation: { is_change: isChange, properties, current_cost_s: now, cost_s: then },
    } as unknown as WhatIfResponse,
  );
}

const NONE: ReadonlySet<string> = new Set();

describe('advice', () => {
  test('is ranked by what it saves, equal savings by name', () => {
    const all = [advice('b', 10, 9), advice('a', 10, 9), advice('c', 50, 10)];
    expect(ranked(all, NONE).map(one => one.table.name)).toEqual(['c', 'a', 'b']);
    expect(ranked(all, NONE)[0]?.savedS).toBe(40);
  });

  test('that changes nothing is not shown', () => {
    expect(ranked([advice('a', 10, 9, {})], NONE)).toEqual([]);
  });

  test('that was dismissed is not shown until another change is proposed', () => {
    const first = advice('a', 10, 9);
    const dismissed = new Set([identity(first)]);
    expect(ranked([first], dismissed)).toEqual([]);
    expect(ranked([advice('a', 10, 8, { 'lakewright.fan-in': '8' })], dismissed)).toHaveLength(1);
    expect(ranked([advice('b', 10, 9)], dismissed)).toHaveLength(1);
  });

  test('is the same in any order of its properties', () => {
    expect(identity(advice('a', 2, 1, { x: '1', y: '2' }))).toBe(identity(advice('a', 2, 1, { y: '2', x: '1' })));
  });

  test('never saves less than nothing', () => {
    expect(advice('a', 1, 2).savedS).toBe(0);
  });
});
