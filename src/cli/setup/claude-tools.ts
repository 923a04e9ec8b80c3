import { join } from 'node:path';
import { z } from 'zod';
import { createClaude } from '../../actors/assistants/claude.ts';
import { readRegular } from '../../actors/files/regular-file.ts';
import { parseJson } from '../../machines/json.ts';
import type { Config } from '../config/schema/config-schema.ts';

const settingsSchema = z.looseObject({
  permissions: z.looseObject({ allow: z.array(z.string()).catch([]) }),
});
const settingsBytesAtMost = 1024 * 1024;

/** `Bash(npm test:*),Edit` */
const toolsIn = (text: string): readonly string[] => text.match(/[^\s,(]+(?:\([^)]*\))?/g) ?? [];

/** The values of an option that claude takes with several words, or with commas. */
const toolsOf = (args: readonly string[], option: RegExp): readonly string[] => {
  let isOpen = false;
  return args.flatMap((arg) => {
    const [name = '', ...value] = arg.startsWith('-') ? arg.split('=') : [];
    if (arg.startsWith('-')) isOpen = option.test(name);
    return isOpen ? toolsIn(arg.startsWith('-') ? value.join('=') : arg) : [];
  });
};

/** In the user's own settings of claude, which count beside our arguments. */
const toolsInSettings = (env: Readonly<Record<string, string>>): readonly string[] => {
  const [folder] = createClaude().needs(env).folders;
  try {
    const text = readRegular(join(folder?.path ?? '', 'settings.json'), settingsBytesAtMost);
    return settingsSchema.safeParse(parseJson(text)).data?.permissions.allow ?? [];
  } catch {
    return [];
  }
};

/** Which tools claude may use without asking, and how to allow more: nobody can be asked. */
export const claudeToolsText = (
  { api: { claude_args: args }, mcp }: Config,
  env: Readonly<Record<string, string>>,
): string => {
  const denied = toolsOf(args, /^--disallowed-?tools$/i);
  const without = denied.length === 0 ? '' : `, without ${denied.join(', ')}`;
  const mode = args.find(
    (arg, at) => /^bypassPermissions$/.test(arg) && args[at - 1] === '--permission-mode',
  );
  if (
    mode !== undefined ||
    args.some((arg) => /^--dangerously-skip-permissions|=bypassPermissions$/.test(arg))
  )
    return `uses every tool, by api.claude_args${without}`;
  const allowed = [
    ...toolsOf(args, /^--allowed-?tools$/i),
    ...toolsInSettings(env),
    ...Object.keys(mcp.servers).map((name) => `mcp__${name}`),
  ];
  const more =
    allowed.length === 0 ? 'runs no command' : `may use ${[...new Set(allowed)].join(', ')}`;
  return `reads and edits the workspace, and ${more}${without}; to allow more, for instance: agent config set api.claude_args '["--allowedTools", "Bash(npm test:*)"]'`;
};
