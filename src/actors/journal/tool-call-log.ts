import { z } from 'zod';
import type { Store } from '../store/port.ts';

const toolEndSchema = z.looseObject({
  tool: z.string(),
  ok: z.boolean(),
  duration_ms: z.number(),
  call_id: z.string(),
});
const toolStartSchema = z.looseObject({ call_id: z.string(), arguments: z.string() });

const page = 512;
const shownArguments = 200;

/** One line per tool call of an attempt, oldest first, from the journal. */
export const readWorkLog = (store: Store, taskId: string, attempt: number): readonly string[] => {
  const started = new Map<string, string>();
  const lines: string[] = [];
  let after = 0;
  for (;;) {
    const entries = store.read({ taskId, after, limit: page });
    for (const entry of entries.filter((each) => each.attempt === attempt)) {
      if (entry.type === 'tool_start') {
        const start = toolStartSchema.parse(JSON.parse(entry.data));
        started.set(start.call_id, start.arguments.slice(0, shownArguments));
      }
      if (entry.type !== 'tool_end') continue;
      const end = toolEndSchema.parse(JSON.parse(entry.data));
      const at = new Date(entry.at).toISOString();
      lines.push(
        `${at} \`${end.tool}\` ${started.get(end.call_id) ?? ''} → ${end.ok ? 'ok' : 'not ok'}, ${end.duration_ms} ms`,
      );
    }
    const last = entries.at(-1);
    if (last === undefined) return lines;
    after = last.seq;
  }
};
