import { z } from 'zod';
import { writeAccess } from './confine.ts';
import { writeInside } from './confined-files.ts';
import type { OwnTool } from './port.ts';

const writeArguments = z.strictObject({
  path: z.string().min(1).describe('file path, relative to the workspace root'),
  content: z.string().describe('the whole new content of the file'),
});

export const writeTool: OwnTool<z.infer<typeof writeArguments>> = {
  name: 'write',
  files: 'changes',
  isRepeatable: true,
  description:
    'Creates a file, or replaces the whole content of one; missing folders are made. To change a part of a file, use edit if you have it.',
  schema: writeArguments,
  run: async ({ path, content }, { root, isOwn, held }) => {
    const written = await writeInside(root, path, content, writeAccess(isOwn), held);
    if (!written.ok) return written;
    return {
      ok: true,
      text: `${written.value.created ? 'created' : 'replaced'} ${path} (${Buffer.byteLength(content)} bytes)${written.value.note}`,
    };
  },
};
