// The rules of a replay side by side: files, bytes rewritten, and cost.
import type { RuleReplayed } from '../../api/schema';
import { ratio } from '../../format/numbers';
import { duration } from '../../format/times';
import { Bytes, Count } from '../../parts/values';

export function RuleList({ rules }: { rules: readonly RuleReplayed[] }) {
  const cheapest = Math.min(...rules.map(rule => rule.cost_s));
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Cost of each rule">
      <table class="list">
        <thead>
          <tr>
            <th scope="col">Rule</th>
            <th scope="col" class="right">
              Files, mean
            </th>
            <th scope="col" class="right wide-only">
              Files at the end
            </th>
            <th scope="col" class="right wide-only">
              Rewrites
            </th>
            <th scope="col" class="right">
              Bytes rewritten
            </th>
            <th scope="col" class="right wide-only">
              Per byte added
            </th>
            <th scope="col" class="right">
              Cost
            </th>
          </tr>
        </thead>
        <tbody>
          {rules.map(rule => (
            <tr key={rule.name} class={rule.cost_s === cheapest ? 'best' : ''}>
              <th scope="row">{rule.title}</th>
              <td class="right">
                <Count value={Math.round(rule.files_mean)} />
              </td>
              <td class="right wide-only">
                <Count value={rule.files_at_end} />
              </td>
              <td class="right wide-only">
                <Count value={rule.jobs} />
              </td>
              <td class="right">
                <Bytes value={rule.bytes_rewritten} />
              </td>
              <td class="right number wide-only">{ratio(rule.write_amplification)}</td>
              <td class="right number" title={`${rule.cost_s} core-seconds`}>
                {duration(rule.cost_s)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
