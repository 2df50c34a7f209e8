import { expect, test } from 'vitest';
import { predictionText } from '../src/format/prediction';

test('what can be replaced now and what the run removes are two figures', () => {
  const predicted = { files_replaced: 31, files_removed: 45, bytes: 2048, benefit: 91.028 };
  expect(predictionText(predicted)).toBe(
    '31 files can be replaced now. Predicted for its run: 45 fewer files, 2 KiB to read, benefit 91.028.',
  );
});

test('other actions predict other figures, or none', () => {
  expect(predictionText({ files_deleted: 3, freed_bytes: 1024 })).toBe(
    'Predicted for its run: files deleted 3, freed bytes 1 KiB.',
  );
  expect(predictionText({})).toBe('');
  expect(predictionText({ files_replaced: 0, bytes: 0, files_removed: 0 })).toBe('');
});
