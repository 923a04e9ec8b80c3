import { z } from 'zod';
import type { McpBackend } from './backend.ts';

const resourcePageSchema = z.looseObject({
  tasks: z.array(
    z.looseObject({ task_id: z.string(), title: z.string(), result: z.string().optional() }),
  ),
  next_cursor: z.string().optional(),
});
const resourcesPerPage = 100;

const taskUri = (id: string): string => `task://${encodeURIComponent(id)}`;

export const listResources = async ({ call }: McpBackend, cursor: string | undefined) => {
  const page = await call('list', {
    limit: resourcesPerPage,
    ...(cursor === undefined ? {} : { cursor }),
  });
  const { tasks, next_cursor } = resourcePageSchema.parse(page);
  const resources = tasks.flatMap(({ task_id, title, result }) => [
    { uri: taskUri(task_id), name: task_id, title, mimeType: 'application/json' },
    ...(result === undefined
      ? []
      : [
          {
            uri: `${taskUri(task_id)}/result`,
            name: `${task_id} result`,
            title: `Result of ${task_id}: ${title}`,
            mimeType: 'text/markdown',
          },
        ]),
  ]);
  return { resources, ...(next_cursor === undefined ? {} : { nextCursor: next_cursor }) };
};

export const resourceTemplates = {
  resourceTemplates: [
    {
      uriTemplate: 'task://{task_id}',
      name: 'task',
      title: 'A task as it is now',
      mimeType: 'application/json',
    },
    {
      uriTemplate: 'task://{task_id}/result',
      name: 'result',
      title: 'What the agent says of a complete task',
      mimeType: 'text/markdown',
    },
  ],
};

const decodedOrNull = (text: string): string | null => {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
};

/** Null for an unknown address, and for a result that is not there yet. */
export const readResource = async ({ call }: McpBackend, uri: string): Promise<object | null> => {
  const match = /^task:\/\/([^/?#]+)(\/result)?$/.exec(uri);
  const id = match?.[1] === undefined ? null : decodedOrNull(match[1]);
  if (id === null) return null;
  const task = await call('status', { task_id: id });
  if (match?.[2] === undefined)
    return { contents: [{ uri, mimeType: 'application/json', text: JSON.stringify(task) }] };
  const { result } = z.looseObject({ result: z.string().optional() }).parse(task);
  if (result === undefined) return null;
  return { contents: [{ uri, mimeType: 'text/markdown', text: result }] };
};
