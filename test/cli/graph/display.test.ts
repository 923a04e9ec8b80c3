import { expect, onTestFinished, test, vi } from 'vitest';
import { createDisplay } from '../../../src/cli/graph/display.ts';
import { createProgress } from '../../../src/cli/graph/progress.ts';
import { createIo } from '../../../src/cli/output/io.ts';
import { textWidth } from '../../../src/cli/output/wrap.ts';
import { aTask } from '../output/a-task.ts';

test('the live table breaks its own lines, and fits a terminal of 40 columns and 12 rows', async () => {
  const written: string[] = [];
  const write = (text: string) => written.push(text);
  const output = { isTTY: true, columns: 40, rows: 12, write };
  const progress = createProgress();
  const ids = Array.from({ length: 20 }, (_, n) => `bd-${n}a`);
  const parked = { parked_until: '2026-11-27T12:00:00.000Z', parked_reason: 'provider limit: x' };
  for (const task_id of ids)
    progress.begin(aTask({ task_id, status: 'queued', phase: 'backing_off', ...parked }));
  const display = createDisplay({
    io: createIo(output, output, { NO_COLOR: '1' }),
    json: false,
    progress,
    followed: () => ids,
  });
  onTestFinished(() => display.stop());

  display.ask('Ctrl-C again cancels this run; Enter leaves it running in the background');
  await vi.waitFor(() => expect(written).not.toEqual([]));

  const lines = written.join('').split('\n');
  expect(lines.join(' ')).toContain('to try now, in another terminal: agent retry bd-0a');
  expect(lines.join(' ')).toMatch(/more are not shown .*in the background$/);
  expect(lines.length).toBeLessThan(output.rows);
  for (const line of lines) expect(textWidth(line)).toBeLessThanOrEqual(output.columns);
});
