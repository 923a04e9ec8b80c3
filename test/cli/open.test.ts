import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { openProject } from '../support/cli.ts';
import { temporaryFolder } from '../support/temporary.ts';

const address = /^http:\/\/127\.0\.0\.1:\d+\/#c=[\w-]{43}$/;

test('open --print starts a server and prints an address that works once', async () => {
  const project = openProject();

  const { code, out } = await project.agent('open', '--print');

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

  const opened = await project.agent('open', id, '--print');
  const unknown = await project.agent('open', 'bd-none', '--print');

  expect(opened.out.trim()).toMatch(new RegExp(`&task=${id}$`));
  expect([unknown.code, unknown.out]).toEqual([3, '']);
});

test('open gives the address to the opener of the desktop, and prints it where there is none', async () => {
  const project = openProject();
  const folder = temporaryFolder();
  const seen = join(folder, 'seen');
  writeFileSync(join(folder, 'xdg-open'), `#!/bin/sh\nprintf %s "$1" > '${seen}'\n`);
  chmodSync(join(folder, 'xdg-open'), 0o755);
  const path = `${folder}:${process.env['PATH']}`;

  const opened = await project.agentWith({ DISPLAY: ':9', PATH: path }, 'open');
  const printed = await project.agentWith({ PATH: path, BROWSER: undefined }, 'open');

  expect([opened.code, opened.out]).toEqual([0, expect.stringMatching(/^opened http:\S+ in your/)]);
  await vi.waitFor(() => expect(existsSync(seen)).toBe(true));
  expect(readFileSync(seen, 'utf8')).toMatch(address);
  expect(printed.out.trim()).toMatch(address);
  expect(printed.err).toContain('no browser could be opened');
});

test('open --json prints the address and when it ends', async () => {
  const project = openProject();

  const { out } = await project.agent('open', '--json');

  expect(JSON.parse(out)).toEqual({
    url: expect.stringMatching(address),
    expires_at: expect.stringMatching(/Z$/),
  });
});
