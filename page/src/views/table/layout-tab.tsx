// Layout: files per size level.
import type { TableStatus } from '../../api/schema';
import { bytes } from '../../format/numbers';
import { Card } from '../../parts/frame';
import { barsOf, Histogram } from '../../parts/histogram';

export function LayoutTab({ table }: { table: TableStatus }) {
  const target = table.policy.values.find(one => one.property === 'lakewright.target-file-size')?.value;
  return (
    <Card title="Files by size" note={typeof target === 'number' ? `target ${bytes(target)}` : undefined}>
      <Histogram bars={barsOf(table.layout)} now="Files" />
    </Card>
  );
}
