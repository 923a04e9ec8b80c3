import type { Assistant, AssistantStart } from './port.ts';
import { homeIn } from './program.ts';

/** The model is a caller's word: it must not become an option. */
const fillPlaceholders = (part: string, { promptFile, taskId, role, model }: AssistantStart): string =>
  part
    .replaceAll('{prompt_file}', promptFile)
    .replaceAll('{task_id}', taskId)
    .replaceAll('{role}', role)
    .replaceAll('{model}', model?.replace(/^-+/, '') ?? '');

/** Any program: it reads the prompt, and the end of what it writes is the result when it ends with exit code 0. */
export const createCommand = ([program, ...args]: readonly [string, ...string[]]): Assistant => ({
  name: 'command',
  variables: [],
  saysCost: false,
  resumes: false,
  endsByExit: true,
  argv: (start) => [program, ...args.map((part) => fillPlaceholders(part, start))],
  needs: (env) => ({ home: homeIn(env), folders: [], files: [], nests: false }),
  read: (line) => [{ type: 'text', text: `${line}\n` }],
});
