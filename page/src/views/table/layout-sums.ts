// Layouts of several partitions added up, level by level.
import type { PartitionPlan, RewriteView } from '../../api/schema';
import { type Bar, levelLabel } from '../../parts/histogram';

/** Files per level before and after all of these plans. */
export function addedLevels(plans: readonly Pick<PartitionPlan, 'before' | 'after'>[]): Bar[] {
  const first = plans[0];
  if (first === undefined) return [];
  return first.before.levels.map((level, index) => ({
    label: levelLabel(level),
    title: `level ${level.level}`,
    value: sum(plans.map(one => one.before.levels[index]?.files ?? 0)),
    other: sum(plans.map(one => one.after.levels[index]?.files ?? 0)),
  }));
}

/** Files per level that these rewrites read and wrote; rewrites that do not record levels do not count. */
export function rewrittenLevels(rewrites: readonly Pick<RewriteView, 'input' | 'output'>[]): {
  before: number[];
  after: number[];
} {
  const before: number[] = [];
  const after: number[] = [];
  for (const one of rewrites) {
    if (one.input.levels === null || one.output.levels === null) continue;
    one.input.levels.forEach((files, level) => (before[level] = (before[level] ?? 0) + files));
    one.output.levels.forEach((files, level) => (after[level] = (after[level] ?? 0) + files));
  }
  return { before, after };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
