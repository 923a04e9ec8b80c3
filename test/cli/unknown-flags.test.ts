import { expect, test } from 'vitest';
import { commandTable } from '../../src/cli/command-table.ts';
import type { Flags } from '../../src/cli/declarations/command.ts';
import { commonFlags, everywhere } from '../../src/cli/declarations/common-flags.ts';
import { readCommand } from '../../src/cli/words/read-command.ts';
import { UsageError } from '../../src/cli/words/usage-error.ts';

const mutatedLong = (name: string): readonly string[] => [
  ...[`--${name}-x`, `--${name}x`, `--${name}_x`, `--${name}.x`, `--${name}:x`, `--${name}-`],
  ...[`--${name}-x=1`, `--${name}-x=`, `--${name}.x=1`, `---${name}`, `--no-${name}-x`],
  ...[`--x-${name}`, `-${name}-x`, `--${name.toUpperCase()}`],
];

/** What is read of a line; `refused` when it is no line of the command. */
const read = (words: readonly string[]): string => {
  try {
    return readCommand(words).kind;
  } catch (error) {
    if (error instanceof UsageError) return 'refused';
    throw error;
  }
};

test.each(commandTable.map((command) => [command.name, command] as const))(
  '%s refuses each of its flags with something more in its name',
  (name, { words, flags }) => {
    const required = words.flatMap(({ optional, choices }) =>
      optional === true ? [] : [choices?.[0] ?? 'bd-a1'],
    );
    const own: Flags = { ...commonFlags, ...everywhere, ...flags };
    const all = Object.entries(own);
    const known = new Set(all.map(([flag]) => `--${flag}`));
    // `-Ffile` is `-F file`.
    const isValueOfShort = (word: string): boolean =>
      all.some(([, { type, short }]) => type !== 'switch' && short === /^-([^-])/.exec(word)?.[1]);

    const taken = all.flatMap(([flag, { type, short }]) =>
      [
        ...mutatedLong(flag),
        ...(type === 'switch' ? [`--${flag}=x`, `--${flag}=`] : []),
        ...(type === 'switch' && short !== undefined ? [`-${short}~`, `-${short}-x`] : []),
      ]
        .filter((mutated) => !known.has(mutated) && !isValueOfShort(mutated))
        .flatMap((mutated) => [[mutated], [mutated, '1']])
        .map((mutated) => [name, ...required, ...mutated])
        .filter((line) => read(line) !== 'refused')
        .map((line) => line.join(' ')),
    );

    expect(taken).toEqual([]);
  },
);
