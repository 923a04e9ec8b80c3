import { type CliCommand, type Flag, type Flags, groups } from '../declarations/command.ts';
import { commonFlags, everywhere } from '../declarations/common-flags.ts';
import { wrap } from '../output/wrap.ts';
import { usageLineOf } from './check-words.ts';

type HelpRow = readonly [name: string, says: string];

const widestName = 26;

/** Two columns. A name that is too wide has a line of its own. */
const renderRows = (rows: readonly HelpRow[], width: number): readonly string[] => {
  const column = Math.min(
    widestName,
    Math.floor(width * 0.4),
    Math.max(...rows.map(([name]) => name.length)),
  );
  const indent = ' '.repeat(column + 4);
  return rows.flatMap(([name, says]) => {
    const [first = '', ...rest] = wrap(says, width - indent.length);
    const more = rest.map((line) => `${indent}${line}`);
    return name.length > column
      ? [`  ${name}`, `${indent}${first}`, ...more]
      : [`  ${name.padEnd(column)}  ${first}`.trimEnd(), ...more];
  });
};

const section = (title: string, rows: readonly HelpRow[], width: number): readonly string[] =>
  rows.length === 0 ? [] : ['', `${title}:`, ...renderRows(rows, width)];

const choicesText = (given: { readonly choices?: readonly string[] }): string =>
  given.choices === undefined ? '' : `: ${given.choices.join(', ')}`;

/** The meaning of a flag or a word, with its choices and default. */
export const meaningOf = (
  declared: Pick<Flag, 'describe'> & {
    readonly choices?: readonly string[];
    readonly many?: true;
    readonly default?: unknown;
  },
): string => {
  const { describe, many, default: otherwise } = declared;
  const shown =
    typeof otherwise === 'boolean' || otherwise === undefined ? '' : ` (default: ${otherwise})`;
  return `${describe}${choicesText(declared)}${many === true ? ' (repeatable)' : ''}${shown}`;
};

/** `-f, --follow`, `--title <text>`; a switch that is on is shown as `--no-start`. */
export const flagPattern = (name: string, flag: Flag): string => {
  const short = flag.short === undefined ? '' : `-${flag.short}, `;
  const isOn = flag.type === 'switch' && flag.default === true;
  const second = flag.type === 'text' && flag.second !== undefined ? ` <${flag.second}>` : '';
  const value = flag.type === 'switch' ? '' : ` <${flag.value}>${second}`;
  return `${short}--${isOn ? 'no-' : ''}${name}${value}`;
};

const flagRows = (flags: Flags): readonly HelpRow[] => {
  const shown = Object.entries(flags).filter(([, { hidden }]) => hidden !== true);
  const anyShort = shown.some(([, { short }]) => short !== undefined);
  return shown.map(([name, flag]) => {
    const indent = anyShort && flag.short === undefined ? '    ' : '';
    return [`${indent}${flagPattern(name, flag)}`, meaningOf(flag)];
  });
};

const examplesOf = ({ examples }: Pick<CliCommand, 'examples'>): readonly string[] =>
  examples.length === 0
    ? []
    : ['', 'Examples:', ...examples.flatMap(([line, says]) => [`  # ${says}`, `  $ ${line}`])];

const commonFlagsOf = ({ common = ['json', 'project'] }: Pick<CliCommand, 'common'>): Flags =>
  Object.fromEntries(common.map((name) => [name, commonFlags[name]]));

export const renderCommandHelp = (command: CliCommand, width: number): string => {
  const { aliases = [], describe, words, flags } = command;
  const also =
    aliases.length === 0 ? [] : ['', `Also: ${aliases.map((name) => `agent ${name}`).join(', ')}`];
  const common = { ...commonFlagsOf(command), help: everywhere.help };
  return [
    ...wrap(`${describe}.`, width),
    '',
    'Usage:',
    `  ${usageLineOf(command)}${Object.keys(flags).length === 0 ? '' : ' [flags]'}`,
    ...also,
    ...section(
      'Arguments',
      words.map((word): HelpRow => [word.name, meaningOf(word)]),
      width,
    ),
    ...section('Flags', flagRows(flags), width),
    ...section('Common flags', flagRows(common), width),
    ...examplesOf(command),
  ].join('\n');
};

const flagNamesOf = ({ name, aliases = [] }: CliCommand): string => [name, ...aliases].join(', ');

export const renderHelp = (commands: readonly CliCommand[], width: number): string =>
  [
    ...wrap('Runs coding agents on the tasks of this project.', width),
    '',
    'Usage:',
    '  agent <command> [flags]',
    ...Object.entries(groups).flatMap(([key, title]) =>
      section(
        title,
        commands
          .filter(({ group }) => group === key)
          .map((command): HelpRow => [flagNamesOf(command), command.describe]),
        width,
      ),
    ),
    ...section('Flags', flagRows({ ...commonFlags, ...everywhere }), width),
    '',
    'agent <command> --help shows the flags and examples of a command.',
  ].join('\n');

/** For a program without commands. */
export const renderProgramHelp = (
  {
    usage,
    describe,
    flags,
    examples,
  }: Pick<CliCommand, 'describe' | 'flags' | 'examples'> & {
    readonly usage: string;
  },
  width: number,
): string =>
  [
    ...wrap(describe, width),
    '',
    'Usage:',
    `  ${usage}`,
    ...section('Flags', flagRows({ ...flags, ...everywhere }), width),
    ...examplesOf({ examples }),
  ].join('\n');

/** At most 80 columns, so that a page looks the same everywhere. */
export const helpWidth = (columns: number | undefined): number =>
  Math.max(40, Math.min(80, columns ?? 80));
