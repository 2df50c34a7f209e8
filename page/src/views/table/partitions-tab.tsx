// Partitions as a heat map: each is a tile, shaded by what can be gained; a chosen one shows its files and decisions.
import { useState } from 'preact/hooks';
import { api, read } from '../../api/client';
import type { PartitionView, TableStatus } from '../../api/schema';
import { thisTable, useResource } from '../../api/use-resource';
import { compactness, count, plural } from '../../format/numbers';
import { formatRoute } from '../../navigation/route';
import { Badge } from '../../parts/badge';
import { Card, Empty, Figure, Figures, Loaded } from '../../parts/frame';
import { barsOf, Histogram } from '../../parts/histogram';
import { Bytes, Compactness, Count, Sentence } from '../../parts/values';
import { SHADES, shadeOf } from './shades';

const PAGE = 500;
const MAX_PAGES = 6;

interface Read {
  readonly partitions: readonly PartitionView[];
  readonly isWhole: boolean;
}

export function PartitionsTab({ table }: { table: TableStatus }) {
  const [chosen, setChosen] = useState<string | null>(null);
  const found = useResource(`partitions ${table.name}`, signal => readAll(table.name, signal), thisTable(table.id));
  return (
    <Loaded of={found}>
      {({ partitions, isWhole }) => {
        const one = partitions.find(partition => partition.partition_key === chosen);
        if (partitions.length === 0) return <Empty>No partition has files.</Empty>;
        return (
          <>
            <Card
              title="Partitions"
              note={`${plural(partitions.length, 'partition')}${isWhole ? '' : ', the first ones by name'}`}
            >
              <Scale />
              <div class="tiles">
                {partitions.map(partition => (
                  <button
                    key={partition.partition_key}
                    type="button"
                    class={`tile shade-${shadeOf(partition.layout.excess_ratio)}`}
                    aria-pressed={partition.partition_key === chosen}
                    title={describe(partition)}
                    onClick={() => setChosen(partition.partition_key === chosen ? null : partition.partition_key)}
                  >
                    <span class="tile-label">{shortLabel(partition)}</span>
                    <span class="tile-value">{plural(partition.layout.files, 'file')}</span>
                  </button>
                ))}
              </div>
            </Card>
            {one !== undefined && <Partition table={table} partition={one} />}
          </>
        );
      }}
    </Loaded>
  );
}

async function readAll(name: string, signal: AbortSignal): Promise<Read> {
  const partitions: PartitionView[] = [];
  let token: string | null = null;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const query: { limit: number; page_token?: string } = { limit: PAGE };
    if (token !== null) query.page_token = token;
    const found = await read(api.GET('/v1/tables/{name}/partitions', { params: { path: { name }, query }, signal }));
    partitions.push(...found.partitions);
    token = found.next_page_token;
    if (token === null) return { partitions, isWhole: true };
  }
  return { partitions, isWhole: false };
}

/** The values alone: the columns are the same for all tiles, and the space is small. */
function shortLabel(partition: PartitionView): string {
  const values = Object.values(partition.partition).map(value => value ?? 'null');
  return values.length === 0 ? partition.partition_label : values.join(' · ');
}

function describe(partition: PartitionView): string {
  const { files, files_needed, small_files } = partition.layout;
  return `${partition.partition_label}: ${count(small_files)} small; ${compactness(files, files_needed)}`;
}

function Scale() {
  return (
    <p class="scale">
      <span>as compact as it can be</span>
      {SHADES.map(shade => (
        <span key={shade} class={`swatch shade-${shade}`} />
      ))}
      <span>only small files</span>
    </p>
  );
}

function Partition({ table, partition }: { table: TableStatus; partition: PartitionView }) {
  const { layout } = partition;
  const link = formatRoute(['tables', table.name], { tab: 'decisions', partition: partition.partition_label });
  return (
    <Card title={partition.partition_label} note={<a href={link}>All decisions about this partition</a>}>
      <Figures>
        <Figure label="Files" note={`${count(layout.small_files)} small`}>
          <Count value={layout.files} />
        </Figure>
        <Figure label="Size">
          <Bytes value={layout.bytes} />
        </Figure>
        <Figure label="To gain">
          <Compactness files={layout.files} needed={layout.files_needed} excess={layout.excess_ratio} />
        </Figure>
        <Figure label="Deleted rows" note={`in ${plural(layout.deletion_vector_files, 'file')}`}>
          <Count value={layout.deleted_rows} />
        </Figure>
      </Figures>
      <ul class="partition-decisions">
        {partition.decisions.map(one => (
          <li key={one.action}>
            <Badge state={one.decision} /> <Sentence text={one.reason_text} />
          </li>
        ))}
      </ul>
      <Histogram bars={barsOf(layout)} now="Files" />
    </Card>
  );
}
