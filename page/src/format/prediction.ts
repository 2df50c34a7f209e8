import { bytes, exact, plural } from './numbers';

/**
 * What a decision predicts, as a sentence or two. Files that can be replaced are counted now; the other figures include
 * files that arrive before the job runs.
 */
export function predictionText(predicted: Record<string, number>): string {
  const { files_replaced: replaced, files_removed: removed, bytes: read, ...others } = predicted;
  const now = !replaced ? [] : [`${plural(replaced, 'file')} can be replaced now.`];
  const parts = Object.entries(others).map(([name, value]) => `${name.replaceAll('_', ' ')} ${amount(name, value)}`);
  if (read) parts.unshift(`${bytes(read)} to read`);
  if (removed) parts.unshift(plural(removed, 'fewer file'));
  return [...now, ...(parts.length === 0 ? [] : [`Predicted for its run: ${parts.join(', ')}.`])].join(' ');
}

function amount(name: string, value: number): string {
  return name.endsWith('_bytes') ? bytes(value) : exact(value);
}
