import { Parser } from 'yargs/helpers';
import type { Flag, Flags } from '../declarations/command.ts';

export interface ParsedWords {
  /** Words before `--`, without the flags that are known. */
  readonly words: readonly string[];
  /** Words after `--`: text, also where it begins with a dash. */
  readonly text: readonly string[];
  /** A list where a flag was given several times. */
  readonly flags: Readonly<Record<string, unknown>>;
  /** Flags at the end of the line, or before another flag, where a value is missing. */
  readonly withoutValue: readonly string[];
}

const namesOf = (flags: Flags, type: 'switch' | 'value'): string[] =>
  Object.entries(flags).flatMap(([name, flag]) =>
    (flag.type === 'switch') === (type === 'switch') ? [name] : [],
  );

const valuesOf = (flag: Flag | undefined): number =>
  flag?.type === 'text' && flag.second !== undefined ? 2 : 1;

const shortNames = (flags: Flags): { [name: string]: string } =>
  Object.fromEntries(
    Object.entries(flags).flatMap(([name, { short }]) =>
      short === undefined ? [] : [[name, short]],
    ),
  );

const configuration = {
  'populate--': true,
  'unknown-options-as-args': true,
  'strip-aliased': true,
  'camel-case-expansion': false,
  'dot-notation': false,
  'parse-numbers': false,
  'parse-positional-numbers': false,
} as const;

/** `-vx` and `-xv`, where only `-v` is a switch: the parser would take it out of the word. */
const strangeShorts = (given: readonly string[], flags: Flags): readonly string[] => {
  const shorts = (isSwitch: boolean): readonly string[] =>
    Object.values(flags).flatMap(({ type, short }) =>
      (type === 'switch') === isSwitch && short !== undefined ? [short] : [],
    );
  const [switches, withValue] = [shorts(true), shorts(false)];
  const end = given.indexOf('--');
  return given.slice(0, end < 0 ? given.length : end).filter((word) => {
    const [, first = '', more = ''] = /^-([A-Za-z])(.+)$/s.exec(word) ?? [];
    if (more === '' || withValue.includes(first)) return false;
    return ![first, ...more].every((letter) => switches.includes(letter));
  });
};

/** Splits a command line into words and known flags; a flag that is unknown is a word. It refuses nothing. */
export const parseWords = (given: readonly string[], flags: Flags): ParsedWords => {
  const withoutValue: string[] = [];
  const strange = strangeShorts(given, flags);
  const read = given.filter((word) => !strange.includes(word));
  const withValue = namesOf(flags, 'value');
  const {
    _: words,
    '--': text = [],
    ...found
  } = Parser(read, {
    boolean: namesOf(flags, 'switch'),
    string: withValue,
    narg: Object.fromEntries(withValue.map((name) => [name, valuesOf(flags[name])])),
    alias: shortNames(flags),
    configuration,
    __: (_text: string, name: string) => {
      withoutValue.push(name);
      return '';
    },
  } as Parameters<typeof Parser>[1]);
  const known = Object.entries(found).filter(([name]) => Object.hasOwn(flags, name));
  // The parser takes `--all-x` for a flag, since `--all` is one.
  const unknown = Object.keys(found).filter((name) => !Object.hasOwn(flags, name));
  return {
    words: [...words.map(String), ...strange, ...unknown.map((name) => asWritten(given, name))],
    text: text.map(String),
    flags: Object.fromEntries(known),
    withoutValue,
  };
};

/** The word of a line that the parser read as the flag `name`. */
const asWritten = (given: readonly string[], name: string): string =>
  given.find((word) => word.replace(/^-+/, '').startsWith(name)) ?? `--${name}`;

/** `--name=value` of switches, which take none. */
export const valuesOfSwitches = (
  given: readonly string[],
  flags: Readonly<Record<string, Flag>>,
): readonly string[] => {
  const end = given.indexOf('--');
  return given.slice(0, end < 0 ? given.length : end).flatMap((word) => {
    const [, name = '', value] = /^--([^=]+)=(.*)$/s.exec(word) ?? [];
    return flags[name]?.type === 'switch' && value !== 'true' && value !== 'false' ? [name] : [];
  });
};
