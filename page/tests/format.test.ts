import { describe, expect, test } from 'vitest';
import { bytes, compactness, count, percent, plural } from '../src/format/numbers';
import { duration, relative } from '../src/format/times';

describe('numbers', () => {
  test.each([
    [0, '0 B'],
    [1023, '1,023 B'],
    [1536, '1.5 KiB'],
    [128 * 1024 * 1024, '128 MiB'],
    [-2048, '−2 KiB'],
    [5 * 1024 ** 6, '5,120 PiB'],
  ])('%d bytes are %s', (value, text) => expect(bytes(value)).toBe(text));

  test.each([
    [9999, '9,999'],
    [9961.8, '9,962'],
    [4.5, '4.5'],
    [12_345, '12.3k'],
    [999_950, '1,000k'],
    [1_234_567, '1.2M'],
  ])('%s is %s', (value, text) => expect(count(value)).toBe(text));

  test('a small share is not shown as none', () => {
    expect([percent(0), percent(0.001), percent(0.5), percent(1)]).toEqual(['0%', '<1%', '50%', '100%']);
  });

  test('what can be gained is a number of files, and nothing for one file', () => {
    expect([compactness(1, 1), compactness(60, 4)]).toEqual(['as compact as it can be', '60 files, 4 would do']);
    expect([compactness(1, 1, false), compactness(60, 4, false)]).toEqual(['compact', '4 would do']);
  });

  test('one is singular', () => expect([plural(1, 'file'), plural(2, 'file')]).toEqual(['1 file', '2 files']));
});

describe('times', () => {
  test.each([
    [0.0421, '42 ms'],
    [4.25, '4.3 s'],
    [59.6, '1 min'],
    [3725, '1 h 2 min'],
    [3605, '1 h'],
    [200_000, '2 d 7 h'],
  ])('%d seconds are %s', (seconds, text) => expect(duration(seconds)).toBe(text));

  test('relative times have one unit, in either direction', () => {
    const now = Date.parse('2026-01-01T12:00:00Z');
    const at = (seconds: number) => relative(new Date(now - 1000 * seconds), now);
    expect([at(0.2), at(12), at(119), at(-180)]).toEqual(['now', '12 s ago', '1 min ago', 'in 3 min']);
  });
});
