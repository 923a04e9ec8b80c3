import { z } from 'zod';
import type { Entry, EntryReads } from '../../store/port.ts';

const entriesPerRead = 1_000;

/** The journal of a task, or of all tasks, oldest entry first. */
export async function* entriesOf(
  store: Pick<EntryReads, 'read'>,
  taskId?: string,
): AsyncGenerator<Entry> {
  for (let after = 0; ; ) {
    const entries = await store.read({
      taskId,
      after,
      limit: entriesPerRead,
    });
    yield* entries;
    const last = entries.at(-1);
    if (last === undefined || entries.length < entriesPerRead) return;
    after = last.seq;
  }
}

const toolEndSchema = z.looseObject({
  tool: z.string(),
  ok: z.boolean(),
  duration_ms: z.number(),
  call_id: z.string(),
});
const toolStartSchema = z.looseObject({ call_id: z.string(), arguments: z.string() });

const argumentsLength = 200;

/** One line for each tool call of an attempt, oldest first. */
export const readToolCallLog = async (
  store: Pick<EntryReads, 'read'>,
  taskId: string,
  attempt: number,
): Promise<readonly string[]> => {
  const started = new Map<string, string>();
  const lines: string[] = [];
  for await (const entry of entriesOf(store, taskId)) {
    if (entry.attempt !== attempt) continue;
    if (entry.type === 'tool_start') {
      const start = toolStartSchema.parse(JSON.parse(entry.data));
      started.set(start.call_id, start.arguments.slice(0, argumentsLength));
    }
    if (entry.type !== 'tool_end') continue;
    const end = toolEndSchema.parse(JSON.parse(entry.data));
    const at = new Date(entry.at).toISOString();
    lines.push(
      `${at} \`${end.tool}\` ${started.get(end.call_id) ?? ''} → ${end.ok ? 'ok' : 'not ok'}, ${end.duration_ms} ms`,
    );
  }
  return lines;
};
