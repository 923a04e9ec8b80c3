import { z } from 'zod';
import type { ForgeClient } from './http/client.ts';
import { createJobLog, failureText, orWhy } from './job-log.ts';
import type { ForgeCheck } from './port.ts';

const annotationLineAtMost = 600;
const annotationsAtMost = 30;
const summaryAtMost = 4_000;

const runSchema = z.object({
  name: z.string(),
  app: z.object({ slug: z.string().nullish() }).nullish(),
  output: z
    .object({
      title: z.string().nullish(),
      summary: z.string().nullish(),
      text: z.string().nullish(),
    })
    .nullish(),
});
const annotationSchema = z.object({
  path: z.string(),
  start_line: z.number().nullish(),
  annotation_level: z.string().nullish(),
  title: z.string().nullish(),
  message: z.string().nullish(),
});
const statusesSchema = z.array(
  z.object({ id: z.number(), description: z.string().nullish(), target_url: z.string().nullish() }),
);

export const createFailure = (client: ForgeClient) => {
  const { ask } = client;
  const ofStep = createJobLog(client);

  const annotationsOf = async (id: string, signal: AbortSignal): Promise<string> => {
    const path = `check-runs/${id}/annotations`;
    const query = { per_page: annotationsAtMost };
    const schema = z.array(annotationSchema);
    const found = await orWhy(() => ask({ path, query, schema, signal }));
    if ('why' in found) return `The annotations cannot be read: ${found.why}`;
    const lines = found.map(({ path: file, start_line, annotation_level, title, message }) =>
      [`${file}:${start_line ?? 1}: ${annotation_level ?? 'failure'}`, title, message]
        .filter(Boolean)
        .join(': ')
        .slice(0, annotationLineAtMost),
    );
    return lines.length === 0 ? '' : `Annotations:\n${lines.join('\n')}`;
  };

  const ofRun = async (id: string, signal: AbortSignal): Promise<readonly string[]> => {
    const { app, output } = await ask({ path: `check-runs/${id}`, schema: runSchema, signal });
    const said = [output?.title, output?.summary, output?.text].filter(Boolean).join('\n');
    return [
      said.slice(0, summaryAtMost),
      await annotationsOf(id, signal),
      // A job of Actions has the id of its check run.
      app?.slug === 'github-actions' ? await ofStep(id, signal) : '',
    ];
  };

  const ofStatus = async (id: string, sha: string, signal: AbortSignal): Promise<string> => {
    const query = { per_page: 100 };
    const path = `commits/${sha}/statuses`;
    const found = await ask({ path, query, schema: statusesSchema, signal });
    const status = found.find((each) => String(each.id) === id);
    return [status?.description, status?.target_url].filter(Boolean).join('\n');
  };

  return async ({ id, name, url }: ForgeCheck, signal: AbortSignal): Promise<string> => {
    const [kind, number = '', sha = ''] = id.split(':');
    const parts =
      kind === 'run' ? await ofRun(number, signal) : [await ofStatus(number, sha, signal)];
    return failureText(name, url, parts);
  };
};
