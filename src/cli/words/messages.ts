import { UsageError } from './usage-error.ts';

export interface UsageFacts {
  command_missing: { flag: string };
  unknown_command: { command: string; meant: string | null };
  /** A word of another tool; `given` is the word in the place where it stands. */
  other_tool: { given: string; use: string };
  /** `help` is the command line that shows the flags. */
  unknown_flag: { flag: string; help: string; meant: string | null };
  foreign_flag: { flag: string; command: string; help: string };
  text_with_dash: { text: string };
  value_missing: { flag: string; value: string; second: string | null };
  value_of_switch: { flag: string };
  number_expected: { flag: string; given: string };
  choice_expected: {
    what: string;
    given: string;
    choices: readonly string[];
    meant: string | null;
  };
  given_twice: { flag: string };
  not_together: { flag: string; other: string };
  /** `given` and `of` are commands with an action. */
  flag_of_action: { flag: string; given: string; of: readonly string[] };
  flag_needed: { flag: string; other: string; value: string };
  word_missing: { command: string; word: string; choices?: readonly string[]; usage: string };
  words_extra: { command: string; words: readonly string[]; instead: string };
}
export type UsageCode = keyof UsageFacts;

const didYouMean = (meant: string | null): string =>
  meant === null ? '' : `; did you mean ${meant}?`;

/** Every message about a command line that was written wrongly. */
const wordMessages: { readonly [Code in UsageCode]: (facts: UsageFacts[Code]) => string } = {
  command_missing: ({ flag }) => `${flag} needs a command; see: agent --help`,
  unknown_command: ({ command, meant }) =>
    `unknown command: ${command}; ${meant === null ? 'see: agent --help' : `did you mean: agent ${meant}?`}`,
  other_tool: ({ given, use }) => `${given}; use: ${use}`,
  unknown_flag: ({ flag, help, meant }) =>
    `unknown flag: ${flag}${meant === null ? `; see: ${help}` : didYouMean(meant)}`,
  foreign_flag: ({ flag, command, help }) => `${command} does not take ${flag}; see: ${help}`,
  text_with_dash: ({ text }) =>
    `${JSON.stringify(text)} begins like a flag; text that begins with - goes after --`,
  value_missing: ({ flag, value, second }) =>
    second === null
      ? `${flag} needs a value: ${flag} <${value}>; a value like a flag is written ${flag}=<${value}>`
      : `${flag} needs two values: ${flag} <${value}> <${second}>`,
  value_of_switch: ({ flag }) => `${flag} takes no value`,
  number_expected: ({ flag, given }) => `${flag} needs a number, not ${JSON.stringify(given)}`,
  choice_expected: ({ what, given, choices, meant }) =>
    `${what} is one of ${choices.join(', ')}; not ${JSON.stringify(given)}${didYouMean(meant)}`,
  given_twice: ({ flag }) => `${flag} is given twice; give it once`,
  not_together: ({ flag, other }) => `${flag} and ${other} cannot be given together`,
  flag_of_action: ({ flag, given, of }) =>
    `${given} does not take ${flag}; it belongs to ${of.join(', ')}`,
  flag_needed: ({ flag, other, value }) => `${flag} needs ${other}${value}`,
  word_missing: ({ command, word, choices, usage }) =>
    `${command} needs ${word}${choices === undefined ? '' : ` (${choices.join(', ')})`}: ${usage}`,
  words_extra: ({ command, words, instead }) =>
    `${command} does not take ${words.map((word) => JSON.stringify(word)).join(' ')}: ${instead}`,
};

export const usageCodes = Object.keys(wordMessages);

export const usageError = <Code extends UsageCode>(
  code: Code,
  facts: UsageFacts[Code],
): UsageError => new UsageError(wordMessages[code](facts));
