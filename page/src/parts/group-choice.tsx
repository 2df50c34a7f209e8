// Chooses one group of the queue, or all of them; absent where the decider serves only one.
import { groupOfAddress } from '../api/groups';
import { setParams } from '../navigation/route';

export function GroupChoice({ groups }: { groups: readonly string[] }) {
  const chosen = groupOfAddress();
  const shown = chosen === '' || groups.includes(chosen) ? groups : [chosen, ...groups];
  if (shown.length < 2 && chosen === '') return null;
  return (
    <select aria-label="Group" value={chosen} onChange={event => setParams({ group: event.currentTarget.value })}>
      <option value="">Every group</option>
      {shown.map(name => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </select>
  );
}
