import type { Assistant, AssistantStart } from './port.ts';
import { homeIn } from './program.ts';

/** The model name comes from a caller: it must not become an option. */
const fillPlaceholders = (
  part: string,
  { promptFile, taskId, role, model }: AssistantStart,
): string =>
  part
    .replaceAll('{prompt_file}', promptFile)
    .replaceAll('{task_id}', taskId)
    .replaceAll('{role}', role)
    .replaceAll('{model}', model?.replace(/^-+/, '') ?? '');

/** Any program that reads the prompt. After exit code 0 the end of its output is the result. */
export const createCommandAssistant = ([program, ...args]: readonly [
  string,
  ...string[],
]): Assistant => ({
  name: 'command',
  label: 'command',
  variables: [],
  providers: [],
  reportsCost: false,
  tellsTokens: false,
  resumes: false,
  endsByExit: true,
  argv: (start) => [program, ...args.map((part) => fillPlaceholders(part, start))],
  needs: (env) => ({ home: homeIn(env), folders: [], files: [], makesOwnSandbox: false }),
  read: (line) => [{ type: 'text', text: `${line}\n` }],
});
