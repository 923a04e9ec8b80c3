import { exitCodes } from '../output/exit-codes.ts';
import type { Io } from '../output/io.ts';
import { UsageError } from '../usage-error.ts';

interface Named {
  readonly name: string;
  readonly describe: string;
}

export const shells = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof shells)[number];

const shellQuoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

const scripts: { readonly [S in Shell]: (commands: readonly Named[]) => string } = {
  bash: (commands) =>
    `complete -W ${shellQuoted(commands.map(({ name }) => name).join(' '))} agent`,
  zsh: (commands) =>
    [
      '#compdef agent',
      '_agent() {',
      '  local -a commands',
      `  commands=(${commands.map((each) => shellQuoted(`${each.name}:${each.describe}`)).join(' ')})`,
      "  _describe 'command' commands",
      '}',
      'compdef _agent agent',
    ].join('\n'),
  fish: (commands) =>
    [
      'complete -c agent -f',
      ...commands.map(
        (each) =>
          `complete -c agent -n __fish_use_subcommand -a ${shellQuoted(each.name)} -d ${shellQuoted(each.describe)}`,
      ),
    ].join('\n'),
};

/** @throws UsageError with --json, which no shell reads */
export const completion = (
  io: Io,
  json: boolean,
  shell: Shell,
  commands: readonly Named[],
): number => {
  if (json) throw new UsageError('completion prints a script for the shell; leave out --json');
  io.out(scripts[shell](commands));
  return exitCodes.done;
};
