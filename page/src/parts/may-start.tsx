// When a job may start that waits for its table's work window.
import { Ago } from './values';

export function MayStart({ at }: { at: string | null }) {
  return at === null ? null : (
    <>
      {' '}
      · waits for its work window, which opens <Ago at={at} />
    </>
  );
}
