import { roles } from '../../machines/task.ts';
import { CallError } from '../client/client.ts';
import { commandTable } from '../command-table.ts';
import type { CliCommand, Common, Flags } from '../declarations/command.ts';
import { commonFlags, everywhere } from '../declarations/common-flags.ts';
import { closest } from '../output/closest.ts';
import { checkWords, flagsOf, type Grammar, refuseUnknownFlags } from './check-words.ts';
import { usageError } from './messages.ts';
import { commandAdvice, keyAdvice } from './other-tools.ts';
import { type ParsedWords, parseWords } from './parse-words.ts';
import { UsageError } from './usage-error.ts';

export type Reading =
  | { readonly kind: 'help'; readonly command: CliCommand | null }
  | { readonly kind: 'version'; readonly json: boolean }
  | { readonly kind: 'run'; readonly command: CliCommand; readonly args: Common };

/** A flag that takes a value in one command counts as such until the command is known. */
const allFlags = (): Flags => {
  const declared = [...commandTable.map(({ flags }) => flags), commonFlags, everywhere].flatMap(
    (flags) => Object.entries(flags),
  );
  const switches = declared.filter(([, { type }]) => type === 'switch');
  return Object.fromEntries([...switches, ...declared.filter((one) => !switches.includes(one))]);
};

const grammar: Grammar = { program: 'agent', common: commonFlags, all: allFlags() };

const commandNames = [
  ...commandTable.flatMap(({ name, aliases = [] }) => [name, ...aliases]),
  'help',
  'version',
];

/** A word before a task may be a role that is spelled wrongly. */
const unknownCommand = (given: string, next: string | undefined): Error => {
  const [, variable] = /^([A-Z][A-Z0-9_]*)=/.exec(given) ?? [];
  if (variable !== undefined)
    return new UsageError(`${variable}=… is no command; ${keyAdvice(variable)}`);
  const use = commandAdvice(given);
  if (use !== null) return usageError('other_tool', { given: `unknown command: ${given}`, use });
  const meant = closest(given, commandNames);
  const isRole = meant === null || roles.some((role) => role === meant);
  if (next === undefined || !isRole)
    return usageError('unknown_command', { command: given, meant });
  const hint = meant === null ? 'see: agent --help' : `did you mean: agent ${meant}?`;
  return new CallError(
    'role_unknown',
    `unknown role ${JSON.stringify(given)}; the roles are ${roles.join(', ')}; ${hint}`,
    { role: given },
  );
};

const commandNamed = (name: string): CliCommand | undefined =>
  commandTable.find((command) => command.name === name || command.aliases?.includes(name));

const requireCommand = (given: string, next: string | undefined): CliCommand => {
  const command = commandNamed(given);
  if (command === undefined) throw unknownCommand(given, next);
  return command;
};

export interface Correction {
  readonly given: string;
  readonly words: readonly string[];
}

/** The line with the command that was meant; null when its command exists, or none is close. */
export const correctionOf = (words: readonly string[]): Correction | null => {
  const parsed = parseWords(words, grammar.all);
  const [given] = parsed.words;
  if (parsed.flags['help'] === true || given === undefined || commandNames.includes(given))
    return null;
  const meant = commandAdvice(given) === null ? closest(given, commandNames) : null;
  if (meant === null) return null;
  const at = words.indexOf(given);
  const corrected = words.map((word, index) => (index === at ? meant : word));
  return parseWords(corrected, grammar.all).words[0] === meant ? { given, words: corrected } : null;
};

const helpOn = (topic: string | undefined): Reading => ({
  kind: 'help',
  command:
    topic === undefined || topic === 'help' || topic === 'version'
      ? null
      : requireCommand(topic, undefined),
});

const readVersion = ({ flags, words: [first, extra] }: ParsedWords): Reading => {
  if (first !== 'version' || extra === undefined)
    return { kind: 'version', json: flags['json'] === true };
  throw usageError('words_extra', {
    command: 'version',
    words: [extra],
    instead: 'see: agent --help',
  });
};

const withoutCommand = (parsed: ParsedWords): Reading => {
  refuseUnknownFlags(parsed, grammar, null);
  const flag = Object.keys(parsed.flags).find((name) => !Object.hasOwn(commonFlags, name));
  if (flag !== undefined) throw usageError('command_missing', { flag: `--${flag}` });
  return helpOn(undefined);
};

/** @throws UsageError, or CallError for a role that does not exist */
export const readCommand = (words: readonly string[]): Reading => {
  const parsed = parseWords(words, grammar.all);
  const [first, second] = [...parsed.words, ...parsed.text];
  const { help, version } = parsed.flags;
  if (help === true || first === 'help') return helpOn(first === 'help' ? second : first);
  if (version === true || first === 'version') return readVersion(parsed);
  if (first === undefined || first.startsWith('-')) return withoutCommand(parsed);
  const command = requireCommand(first, second);
  const own = parseWords(words, flagsOf(grammar, command));
  const args: object = checkWords(words, own, command, grammar);
  // `commonFlags` declares these for every command.
  return { kind: 'run', command, args: args as Common };
};
