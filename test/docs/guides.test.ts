import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { toolbox } from '../../src/actors/tools/toolbox.ts';
import { loadConfig } from '../../src/cli/config/config.ts';
import { readCommand } from '../../src/cli/words/read-command.ts';
import { temporaryFolder } from '../support/temporary.ts';
import { codeOf, guides, pages, textOf } from './pages.ts';

/** The lines of `agent` in the code of a page, without comments and prompts. */
const commandsOf = (page: string): readonly string[] =>
  [...codeOf(page, 'sh'), ...codeOf(page, 'console')]
    .flatMap((code) => code.split('\n'))
    .flatMap((line) => /^(?:\$ )?agent (.+)$/.exec(line)?.[1] ?? [])
    .map((line) => line.replace(/\s+(#|>|\|).*$/, '').trim());

/** Reads a line as the command line does, and runs nothing. */
const read = (line: string): void => {
  const words = [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(
    ([, quoted, word]) => quoted ?? word ?? '',
  );
  readCommand(words);
};

describe.each(guides)('%s', (page) => {
  test('shows only commands and flags that exist', () => {
    for (const line of commandsOf(page)) read(line);
  });

  test('shows only configuration that a server accepts', () => {
    for (const code of codeOf(page, 'json')) {
      // A policy is no configuration; what it requires is a part of one.
      if ('at_most' in JSON.parse(code)) continue;
      const file = join(temporaryFolder(), 'config.json');
      writeFileSync(file, code);
      expect(() => loadConfig({ config: file }, {})).not.toThrow();
    }
  });

  test('has no line over 100 columns, except in a table or as one line of a JSON file', () => {
    const long = textOf(page)
      .split('\n')
      .flatMap((line, index) =>
        line.length > 100 && !/^[|{]/.test(line) ? [`${page}:${index + 1}`] : [],
      );

    expect(long).toEqual([]);
  });
});

const valueAt = (value: unknown, path: string): unknown =>
  path.split('.').reduce((at, name) => (at as Record<string, unknown> | undefined)?.[name], value);

test('the defaults in the tables of the guides are those of the configuration', () => {
  const { config } = loadConfig({ config: undefined }, {});
  const tables = guides.flatMap((page) =>
    [...textOf(page).matchAll(/^\| key \| default \|.*\n\|[-|]+\n((?:\|.*\n)+)/gm)].map(
      ([, rows = '']) => rows,
    ),
  );
  const rows = tables.flatMap((table) => [...table.matchAll(/^\| `([\w.]+)` \| ([^|]+) \|/gm)]);
  const shown = rows.map(([, key = '', value = '']) => [key, value.trim().replaceAll(/[,`]/g, '')]);

  expect(shown).not.toEqual([]);
  expect(shown).toEqual(shown.map(([key = '']) => [key, String(valueAt(config, key))]));
});

/** Each object with `tool` and `arguments` in a value of JSON. */
const callsIn = (value: unknown): readonly { tool: string; arguments: unknown }[] => {
  if (typeof value !== 'object' || value === null) return [];
  const inner = Object.values(value).flatMap(callsIn);
  return 'tool' in value && 'arguments' in value
    ? [{ tool: String(value.tool), arguments: value.arguments }, ...inner]
    : inner;
};

test('the scripts of the guides call tools with arguments that they take', () => {
  const scripts = guides.flatMap((page) => codeOf(page, 'json5')).map((code) => JSON.parse(code));
  const calls = scripts.flatMap(callsIn);

  for (const call of calls) {
    const { schema } = toolbox.find(({ name }) => name === call.tool) ?? {};
    expect(schema?.safeParse(call.arguments), call.tool).toMatchObject({ success: true });
  }
  expect(calls.length).toBeGreaterThan(2);
});

test('the index leads to each guide by a question, and there are at most fourteen', () => {
  const files = pages.filter((page) => page.startsWith('docs/guides/'));
  const listed = [
    ...textOf('docs/index.md').matchAll(/^\| .+\? \| \[[^\]]+\]\((guides\/.+)\) \|$/gm),
  ];

  expect(listed.map(([, link]) => `docs/${link}`).sort()).toEqual([...files].sort());
  expect(files.length).toBeLessThanOrEqual(14);
});

test('the guides show commands', () => {
  expect(guides.flatMap(commandsOf).length).toBeGreaterThan(30);
});
