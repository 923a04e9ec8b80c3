import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { noBrowser, startBrowser } from '../support/browser.ts';
import { openProject } from '../support/cli.ts';
import { testUnless } from '../support/needs.ts';
import { temporaryFolder } from '../support/temporary.ts';

const address = /^http:\/\/127\.0\.0\.1:\d+\/#c=[\w-]{43}$/;

test('open --print starts a server and prints an address that works once', async () => {
  const project = openProject();

  const { code, out } = await project.agent('open', '--direct', '--print');

  expect([code, out.trim()]).toEqual([0, expect.stringMatching(address)]);
  const { origin, hash } = new URL(out.trim());
  const exchange = async () =>
    fetch(`${origin}/page/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ code: hash.slice('#c='.length) }),
    });
  expect([(await exchange()).status, (await exchange()).status]).toEqual([200, 401]);
});

test('open names the task, and refuses one that does not exist', async () => {
  const project = openProject();
  const id = (await project.agent('create', 'x')).out.trim();

  const opened = await project.agent('open', '--direct', id, '--print');
  const unknown = await project.agent('open', '--direct', 'bd-none', '--print');

  expect(opened.out.trim()).toMatch(new RegExp(`&task=${id}$`));
  expect([unknown.code, unknown.out]).toEqual([3, '']);
});

/** An opener of the desktop that notes its arguments, and ends with this code. */
const desktop = (exitCode: number) => {
  const folder = temporaryFolder();
  const seen = join(folder, 'seen');
  const opener = join(folder, 'xdg-open');
  writeFileSync(opener, `#!/bin/sh\nprintf %s "$*" > '${seen}'\nexit ${exitCode}\n`);
  chmodSync(opener, 0o755);
  const env = { DISPLAY: ':9', PATH: `${folder}:${process.env['PATH']}` };
  return { env, argument: () => readFileSync(seen, 'utf8') };
};
const pagesIn = (stateDir: string) =>
  readdirSync(stateDir).filter((name) => name.endsWith('.html'));

test('open gives a file that leads to the address to the opener: no argument holds the code', async () => {
  const project = openProject();
  const { env, argument } = desktop(0);

  const opened = await project.agentWith(
    env,
    'open',
    '--direct',
    (await project.agent('create', 'x')).out.trim(),
  );

  expect([opened.code, opened.out]).toEqual([0, expect.stringMatching(/^opened http:\S+ in your/)]);
  const file = fileURLToPath(argument());
  const page = readFileSync(file, 'utf8');
  const [, url = ''] = /content="0;url=([^"]+)"/.exec(page) ?? [];
  const { origin, hash } = new URL(url.replaceAll('&amp;', '&'));
  const [, code = ''] = /^#c=([\w-]{43})&task=/.exec(hash) ?? [];
  expect(code).not.toBe('');
  expect(argument()).not.toContain(code);
  expect(dirname(file)).toBe(project.stateDir);
  expect(statSync(file).mode & 0o777).toBe(0o600);

  const exchanged = await fetch(`${origin}/page/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ code }),
  });

  expect([exchanged.status, pagesIn(project.stateDir)]).toEqual([200, []]);
});

testUnless(noBrowser)('a browser that opens the file is signed in', async () => {
  const project = openProject();
  const { env, argument } = desktop(0);
  await project.agentWith(env, 'open', '--direct');
  const browser = await startBrowser();
  onTestFinished(() => browser.close());
  const page = await browser.newPage();

  await page.goto(argument());

  await page.waitForURL(/^http:\/\/127\.0\.0\.1:\d+\//);
  await page.getByRole('button', { name: 'Sign out' }).waitFor();
  expect(page.url()).not.toContain('#c=');
});

test('open prints the address where there is no desktop, or its opener fails, and leaves no file', async () => {
  const project = openProject();
  const { env } = desktop(3);

  const failed = await project.agentWith(env, 'open', '--direct');
  const printed = await project.agentWith({ BROWSER: undefined }, 'open', '--direct');

  for (const { out, err } of [failed, printed]) {
    expect(out.trim()).toMatch(address);
    expect(err).toContain('no browser could be opened');
  }
  expect(pagesIn(project.stateDir)).toEqual([]);
});

test('a file that leads to a code is removed when the server starts again', async () => {
  const project = openProject();
  const { env } = desktop(0);
  await project.agentWith(env, 'open', '--direct');
  expect(pagesIn(project.stateDir)).toHaveLength(1);
  await project.stopServer();

  await project.agent('server', 'start');

  expect(pagesIn(project.stateDir)).toEqual([]);
});

test('open --json prints the address and when it ends', async () => {
  const project = openProject();

  const { out } = await project.agent('open', '--direct', '--json');

  expect(JSON.parse(out)).toEqual({
    url: expect.stringMatching(address),
    expires_at: expect.stringMatching(/Z$/),
  });
});
