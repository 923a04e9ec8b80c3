import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { stylePatch } from '../../src/cli/work/patch-style.ts';
import { openProject } from '../support/cli.ts';
import { temporaryFolder } from '../support/temporary.ts';

/** A pager that marks each line, and says how it was called. */
const pager = (): string => {
  const file = join(temporaryFolder(), 'mark');
  writeFileSync(file, '#!/bin/sh\necho "LESS=$LESS"\nsed "s/^/P:/"\n');
  chmodSync(file, 0o755);
  return file;
};

const setUp = () => {
  const { shell, agent } = openProject();
  /** On a terminal of `rows` lines. */
  const on = async (rows: number, line: string, env = `PAGER=${pager()}`) => {
    const command = `stty rows ${rows} cols 80; ${env} $AGENT ${line}; echo "code $?"`;
    const { out } = await shell(`script -qec '${command}' /dev/null < /dev/null`);
    return out.replaceAll('\r\n', '\n');
  };
  return { agent, shell, on };
};

test('long output of help goes through the pager, and short output does not', async () => {
  const { on } = setUp();

  const long = await on(10, 'help');
  const short = await on(200, 'help');
  const off = await on(10, 'help --no-pager');

  expect(long).toMatch(
    /^LESS=FRX\nP:Runs coding agents[\s\S]*\nP:agent <command> --help[\s\S]*code 0\n$/,
  );
  for (const text of [short, off]) expect(text).toMatch(/^Runs coding agents/);
});

test.each([
  ['PAGER=', /^Runs coding/],
  ['PAGER=cat', /^Runs coding/],
  ['TERM=dumb PAGER=false', /^Runs coding/],
  ['PAGER=/nowhere/pager', /^note: the pager \/nowhere\/pager cannot be found[\s\S]*\nRuns coding/],
  ['PAGER="LESS=-S head -n 1"', /^Runs coding agents[^\n]*\ncode 0\n$/],
  ['LESS=-S PAGER="printenv LESS #"', /^-S\ncode 0\n$/],
])('with %s help is still shown', async (env, shown) => {
  const { on } = setUp();

  expect(await on(10, 'help', env)).toMatch(shown);
});

test('show and logs go through the pager; list, JSON and a pipe do not', async () => {
  const { agent, on, shell } = setUp();
  const text = Array.from({ length: 40 }, (_, n) => `line ${n}`).join('\n');
  const id = (await agent('create', text)).out.trim();

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
