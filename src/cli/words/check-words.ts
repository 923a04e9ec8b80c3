import type { Flag, Flags, OwnArgs, Switch, Syntax, Word } from '../declarations/command.ts';
import { everywhere } from '../declarations/common-flags.ts';
import { closest } from '../output/closest.ts';
import { usageError } from './messages.ts';
import { flagAdvice } from './other-tools.ts';
import { type ParsedWords, valuesOfSwitches } from './parse-words.ts';

export type Values = Readonly<Record<string, unknown>>;
type AnySyntax = Syntax<readonly Word[], Flags>;

/** A lone dash and a negative number are words. */
const looksLikeFlag = (word: string): boolean => /^-[^\d]/.test(word);
const long = (name: string): string => `--${name}`;

/** The grammar of a program: the flags of all its commands, and those that each of them takes. */
export interface Grammar {
  readonly program: 'agent' | 'agent-server';
  readonly common: Flags;
  readonly all: Flags;
}

export const flagsOf = ({ common }: Grammar, { flags }: Pick<AnySyntax, 'flags'>): Flags => ({
  ...common,
  ...everywhere,
  ...flags,
});

const helpFor = ({ program }: Grammar, command: AnySyntax | null): string =>
  command === null || command.name === program
    ? `${program} --help`
    : `${program} ${command.name} --help`;

/** @throws UsageError for the first word that is like a flag of this command and is none */
export const refuseUnknownFlags = (
  { words }: ParsedWords,
  grammar: Grammar,
  command: AnySyntax | null,
): void => {
  const text = words.find(looksLikeFlag);
  if (text === undefined) return;
  if (/\s/.test(text)) throw usageError('text_with_dash', { text });
  const [flag = text] = text.split('=');
  const name = flag.replace(/^-+/, '');
  const use = command === null ? null : flagAdvice(command.name, flag);
  if (command !== null && use !== null)
    throw usageError('other_tool', { given: `${command.name} does not take ${flag}`, use });
  const help = helpFor(grammar, command);
  if (command !== null && flag.startsWith('--') && Object.hasOwn(grammar.all, name))
    throw usageError('foreign_flag', { flag, command: command.name, help });
  const known = Object.keys(command === null ? grammar.all : flagsOf(grammar, command));
  const meant = flag.startsWith('--') ? closest(name, known) : null;
  throw usageError('unknown_flag', { flag, help, meant: meant === null ? null : long(meant) });
};

const chosen = (what: string, given: string, choices: readonly string[] | undefined): string => {
  if (choices === undefined || choices.includes(given)) return given;
  throw usageError('choice_expected', { what, given, choices, meant: closest(given, choices) });
};

const numberOfFlag = (flag: string, given: string): number => {
  const value = given.trim() === '' ? Number.NaN : Number(given);
  if (Number.isNaN(value)) throw usageError('number_expected', { flag, given });
  return value;
};

const flagValue = (name: string, flag: Flag, given: unknown): unknown => {
  if (given === undefined) return 'default' in flag ? flag.default : undefined;
  if (flag.type === 'switch') return given;
  if (given === false)
    throw usageError('unknown_flag', { flag: `--no-${name}`, help: '', meant: long(name) });
  const values = (Array.isArray(given) ? given : [given]).map(String);
  if (values.length > 1 && flag.many !== true)
    throw usageError('given_twice', { flag: long(name) });
  const parsed = values.map((value) =>
    flag.type === 'number'
      ? numberOfFlag(long(name), value)
      : chosen(long(name), value, flag.choices),
  );
  return flag.many === true ? parsed : parsed[0];
};

const isGiven = (args: Values, name: string): boolean =>
  args[name] !== undefined && args[name] !== false;

const checkCompany = (flags: Flags, args: Values): void => {
  for (const [name, { conflicts, needs }] of Object.entries(flags)) {
    if (!isGiven(args, name)) continue;
    if (conflicts !== undefined && isGiven(args, conflicts))
      throw usageError('not_together', { flag: long(name), other: long(conflicts) });
    const other = needs === undefined ? undefined : flags[needs];
    if (needs !== undefined && other !== undefined && !isGiven(args, needs))
      throw usageError('flag_needed', {
        flag: long(name),
        other: long(needs),
        value: other.type === 'switch' ? '' : ` <${other.value}>`,
      });
  }
};

const checkAction = (name: string, flags: Flags, args: Values): void => {
  for (const [flag, { actions }] of Object.entries(flags)) {
    if (actions === undefined || !isGiven(args, flag) || actions.includes(String(args['action'])))
      continue;
    const of = actions.map((action) => `${name} ${action}`);
    throw usageError('flag_of_action', {
      flag: long(flag),
      given: [name, args['action']].filter(Boolean).join(' '),
      of,
    });
  }
};

const wordPattern = ({ name, optional, many }: Word): string => {
  const shown = `${name}${many === true ? '...' : ''}`;
  return optional === true ? `[${shown}]` : `<${shown}>`;
};

/** `agent dep <action> <task_id> [depends_on]` */
export const usageLineOf = ({ name, words }: Pick<AnySyntax, 'name' | 'words'>): string =>
  ['agent', name, ...words.map(wordPattern)].join(' ');

const checkedWords = (command: AnySyntax, given: readonly string[], help: string): Values => {
  const { name, words, instead } = command;
  const left = [...given];
  const args: Record<string, unknown> = {};
  for (const word of words) {
    const taken = word.many === true ? left.splice(0) : left.splice(0, 1);
    if (taken.length === 0 && word.optional !== true)
      throw usageError('word_missing', {
        command: name,
        word: wordPattern(word),
        choices: word.choices,
        usage: usageLineOf(command),
      });
    const checked = taken.map((text) => chosen(`${name} <${word.name}>`, text, word.choices));
    args[word.name] = word.many === true ? checked : checked[0];
  }
  if (left.length === 0) return args;
  const otherwise = words.some(({ completes }) => completes === 'task')
    ? 'one task at a time'
    : `see: ${help}`;
  throw usageError('words_extra', { command: name, words: left, instead: instead ?? otherwise });
};

const valueMissing = (name: string, flag: Exclude<Flag, Switch>) => ({
  flag: long(name),
  value: flag.value,
  second: flag.type === 'text' ? (flag.second ?? null) : null,
});

/** The arguments of a command. @throws UsageError */
export const checkWords = <Words extends readonly Word[], Own extends Flags>(
  given: readonly string[],
  parsed: ParsedWords,
  command: Syntax<Words, Own>,
  grammar: Grammar,
): OwnArgs<Words, Own> => {
  refuseUnknownFlags(parsed, grammar, command);
  const flags = flagsOf(grammar, command);
  const [noValue] = parsed.withoutValue;
  const unfinished = noValue === undefined ? undefined : flags[noValue];
  if (noValue !== undefined && unfinished !== undefined && unfinished.type !== 'switch')
    throw usageError('value_missing', valueMissing(noValue, unfinished));
  const [valued] = valuesOfSwitches(given, flags);
  if (valued !== undefined) throw usageError('value_of_switch', { flag: long(valued) });
  const values = Object.fromEntries(
    Object.entries(flags).map(([name, flag]) => [name, flagValue(name, flag, parsed.flags[name])]),
  );
  checkCompany(flags, values);
  const words = [...parsed.words, ...parsed.text].slice(grammar.program === 'agent' ? 1 : 0);
  const args: Values = { ...values, ...checkedWords(command, words, helpFor(grammar, command)) };
  checkAction(command.name, command.flags, args);
  // The checks above made each value what its declaration says.
  return args as OwnArgs<Words, Own>;
};
