import { expect, test } from 'vitest';
import type { TaskView } from '../../../src/actors/journal/task-view.ts';
import type { Client, Frame } from '../../../src/cli/client/client.ts';
import type { CommandContext } from '../../../src/cli/client/command-context.ts';
import { wait } from '../../../src/cli/watch/watch-commands.ts';

const id = 'bd-a1b2';
const taskThat = (more: Partial<TaskView>) => ({
  ...{ task_id: id, title: 'x', status: 'started', phase: 'thinking', attempt: 1 },
  ...{ dependencies: [], unmet_dependencies: [] },
  ...more,
});
const frame = (seq: number, type: string, data: Frame['data']): Frame => ({
  ...{ type, task_id: id, attempt: 1, seq, timestamp: '2026-01-01T00:00:00.000Z', data },
});
const asked = (inputId: string) =>
  frame(1, 'input_required', { input_id: inputId, kind: 'input', question: `ask ${inputId}` });

/** Waits for a task whose stream begins with two questions, of which `open` is not answered. */
const linesWith = async (open: string | null): Promise<string> => {
  const lines: string[] = [];
  let hasEnded = false;
  const clientThat = (more: Partial<TaskView>): Client => ({
    live: true,
    upload: async () => '',
    call: (async () => taskThat(hasEnded ? { status: 'complete' } : more)) as never,
    frames: async function* () {
      yield asked('i1');
      yield asked('i2');
      hasEnded = true;
    },
  });
  const awaiting = { kind: 'input', input_id: open, question: `ask ${open}` };
  const now = clientThat(open === null ? { status: 'complete' } : ({ awaiting } as never));
  const connection = { files: async () => clientThat({}), server: async () => now };
  const io = { err: (text: string) => lines.push(text), out: () => {} };
  await wait({ connection, io, json: false } as unknown as CommandContext, [id], 60);
  return lines.join('\n');
};

test('wait prints the open one of the questions that a stream begins with', async () => {
  expect(await linesWith('i2')).toContain('ask i2');
  expect(await linesWith('i2')).not.toContain('ask i1');
});

test('wait prints no question of a task that ended before its stream began', async () => {
  expect(await linesWith(null)).toMatch(/^waiting for bd-a1b2: started [^\n]*$/);
});
