// What runs used: money where prices are set, core time otherwise.
import type { UsageView } from '../api/schema';
import { bytes } from './numbers';
import { duration } from './times';

export function usedText(usage: UsageView): string {
  return usage.cost === null ? `${duration(usage.core_s)} of core time` : `${usage.cost} ${usage.currency ?? ''}`;
}

export function usedDetail(usage: UsageView): string {
  return `${duration(usage.core_s)} of core time, ${bytes(usage.bytes_read)} read, ${bytes(usage.bytes_written)} written`;
}
