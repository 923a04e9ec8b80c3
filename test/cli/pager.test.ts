import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { stylePatch } from '../../src/cli/work/work-commands.ts';
import { openProject } from '../support/cli.ts';
import { temporaryFolder } from '../support/temporary.ts';

/** A pager that marks each line, and says how it was called. */
const pager = (): string => {
  const file = join(temporaryFolder(), 'mark');
  writeFileSync(file, '#!/bin/sh\necho "LESS=$LESS"\nsed "s/^/P:/"\n');
  chmodSync(file, 0o755);
  return file;
};

const text = Array.from({ length: 40 }, (_, n) => `line ${n}`).join('\n');

const setUp = async () => {
  const { shell, agent } = openProject();
  const id = (await agent('create', text)).out.trim();
  /** On a terminal of `rows` lines. */
  const on = async (rows: number, line: string, env = `PAGER=${pager()}`) => {
    const command = `stty rows ${rows} cols 80; NO_COLOR=1 ${env} $AGENT ${line}; echo "code $?"`;
    const { out } = await shell(`script -qec '${command}' /dev/null < /dev/null`);
    return out.replaceAll('\r\n', '\n');
  };
  return { shell, on, id };
};

test('long output goes through the pager; short output and help do not', {
  tags: ['slow'],
}, async () => {
  const { on, id } = await setUp();

  const long = await on(10, `show ${id}`);
  const short = await on(200, `show ${id}`);
  const off = await on(10, `show ${id} --no-pager`);
  const help = [await on(10, 'help'), await on(10, ''), await on(10, 'run --help')];

  expect(long).toMatch(/^LESS=FRX\nP:bd-[\s\S]*\nP:line 39[\s\S]*code 0\n$/);
  for (const each of [short, off]) expect(each).toMatch(/^bd-/);
  for (const each of help) expect(each).toMatch(/^Run[\s\S]*code 0\n$/);
});

test.each([
  ['PAGER=', /^bd-/],
  ['PAGER=cat', /^bd-/],
  ['TERM=dumb PAGER=false', /^bd-/],
  ['PAGER=/nowhere/pager', /^note: the pager \/nowhere\/pager cannot be found[\s\S]*\nbd-/],
  ['PAGER="LESS=-S head -n 1"', /^bd-[^\n]*\ncode 0\n$/],
  ['LESS=-S PAGER="printenv LESS #"', /^-S\ncode 0\n$/],
])('with %s long output is still shown', async (env, shown) => {
  const { on, id } = await setUp();

  expect(await on(10, `show ${id}`, env)).toMatch(shown);
});

test('show and logs go through the pager; list, JSON and a pipe do not', {
  tags: ['slow'],
}, async () => {
  const { on, shell, id } = await setUp();

  const [show, json, list] = [
    await on(10, `show ${id}`),
    await on(10, `show ${id} --json`),
    await on(5, 'list'),
  ];
  const logs = await on(2, `logs ${id} --full`);
  const piped = await shell(`PAGER=false $AGENT show ${id}`);
  const missing = await on(10, 'show bd-none');

  expect(show).toMatch(/^LESS=FRX\nP:[\s\S]*P:line 39/);
  for (const each of [json, list, logs, missing]) expect(each).not.toContain('P:');
  expect(missing).toContain('code 3');
  expect(piped.out).toContain('line 39');
});

test('a patch has the colours of git', () => {
  const patch = [
    '# note',
    'diff --git a/x b/x',
    '--- a/x',
    '+++ b/x',
    '@@ -1 +1 @@',
    '-a',
    '+b',
    ' c',
  ];

  expect(stylePatch(patch.join('\n'))).toEqual(
    [
      { style: 'yellow', text: '# note' },
      ...patch.slice(1, 4).map((text) => ({ style: 'bold', text })),
      { style: 'cyan', text: '@@ -1 +1 @@' },
      { style: 'red', text: '-a' },
      { style: 'green', text: '+b' },
      ' c',
    ].flatMap((each, at) => (at === 0 ? [each] : ['\n', each])),
  );
});
