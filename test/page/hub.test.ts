import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { noBrowser, startBrowser } from '../support/browser.ts';
import { openHub } from '../support/hub.ts';
import { describeUnless } from '../support/needs.ts';
import { endOfFile } from '../support/temporary.ts';
import { openPageProject } from './project.ts';

/** Two projects at one address, in a real browser, over restarts of the servers and of the hub. */

const atEnd = endOfFile();

describeUnless(noBrowser)('the hub', () => {
  let hub: ReturnType<typeof openHub>;
  let projects: readonly Awaited<ReturnType<typeof openPageProject>>[];
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  let origin: string;
  let task: string;
  const problems: string[] = [];

  const openTab = async (): Promise<Page> => {
    const tab = await context.newPage();
    tab.setDefaultTimeout(20_000);
    tab.on('pageerror', (error) => problems.push(String(error)));
    tab.on('console', (message) => {
      if (/Content Security Policy|TrustedHTML/.test(message.text())) problems.push(message.text());
    });
    tab.on('request', (request) => {
      if (new URL(request.url()).origin !== origin) problems.push(`asked ${request.url()}`);
    });
    return tab;
  };
  const slugAt = (at: number): string => new URL(addresses[at] ?? '').pathname.split('/')[2] ?? '';
  const addresses: string[] = [];

  beforeAll(async () => {
    projects = [await openPageProject(atEnd), await openPageProject(atEnd)];
    hub = openHub(atEnd, projects, { OPENAI_API_KEY: 'no-key-a-script-answers' });
    browser = await startBrowser();
    task = (await hub.agentIn(0, 'create', 'Asked in the first')).out.trim();
    await hub.agentIn(1, 'create', 'Made in the second');
    for (const at of [1, 0]) addresses[at] = await hub.address(at);
    ({ origin } = new URL(addresses[0] ?? ''));
    context = await browser.newContext();
    page = await openTab();
    await page.goto(addresses[0] ?? '');
    await page.getByRole('link', { name: 'Board' }).waitFor();
  }, 120_000);
  afterAll(() => browser?.close());

  test('the code leaves the address, and the tab has its token in memory only', async () => {
    expect(page.url()).toBe(`${origin}/p/${slugAt(0)}/#/needs-you`);
    const kept = await page.evaluate(
      'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])',
    );
    expect(kept).not.toMatch(/[\w-]{43}/);
    expect(await context.cookies()).toEqual([]);
  });

  test('a pasted link signs a new tab in by itself, in every project', {
    tags: ['slow'],
  }, async () => {
    const tab = await openTab();
    await tab.goto(`${origin}/p/${slugAt(1)}/#/board`);
    await tab.getByRole('link', { name: 'Made in the second' }).waitFor();
    await tab.goto(`${origin}/p/${slugAt(0)}/#/task/${task}`);
    await tab.getByRole('heading', { name: 'Asked in the first' }).waitFor();
    await tab.getByRole('link', { name: 'All projects' }).click();
    await tab.getByRole('link', { name: slugAt(1), exact: true }).waitFor();
    await tab.close();
  });

  test('the front page shows what needs a person in each project that runs', {
    tags: ['slow'],
  }, async () => {
    await hub.agentIn(0, 'product-manager', task, '--async');
    const tab = await openTab();
    await tab.goto(`${origin}/`);
    await tab.getByRole('link', { name: 'Asked in the first' }).click();
    await tab.getByText('Red or blue?').first().waitFor();
    expect(tab.url()).toContain(`/p/${slugAt(0)}/#/task/${task}`);
    await tab.close();
  });

  test('a tab goes on over a restart of the hub, with the key of the browser', {
    tags: ['slow'],
  }, async () => {
    await page.evaluate(`location.hash = '#/board'`);
    const requests: string[] = [];
    page.on('request', (request) => requests.push(new URL(request.url()).pathname));
    await hub.hub('stop');
    expect((await hub.hub('start')).out).toContain(`${origin}/`);
    await hub.agentIn(0, 'create', 'Made after the hub');
    await page.getByRole('link', { name: 'Made after the hub' }).waitFor();
    expect(requests).toContain('/hub/tokens');
    expect(requests).not.toContain('/hub/keys');
  });

  test('a stopped server stays stopped under an open tab, and a page that is opened starts it', {
    tags: ['slow'],
  }, async () => {
    await hub.agentIn(0, 'server', 'stop');
    await page.getByText('The server has stopped').waitFor();
    expect((await hub.agentIn(0, 'server', 'status')).code).toBe(6);
    const tab = await openTab();
    await tab.goto(`${origin}/p/${slugAt(0)}/#/task/${task}`);
    await tab.getByRole('heading', { name: 'Asked in the first' }).waitFor();
    expect((await hub.agentIn(0, 'server', 'status')).code).toBe(0);
    // The open tab finds the new server.
    await page.getByText('Everything was read again.').waitFor();
    await tab.close();
  });

  test('a page on another port of this machine gets nothing', { tags: ['slow'] }, async () => {
    const evil = createServer((_, response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).end('<title>evil</title>');
    });
    await new Promise<void>((resolve) => evil.listen(0, '127.0.0.1', resolve));
    atEnd(() => void evil.close());
    const tab = await context.newPage();
    await tab.goto(`http://localhost:${(evil.address() as AddressInfo).port}/`);
    const tries = await tab.evaluate(`(async () => {
      const at = ${JSON.stringify(origin)};
      const json = { 'content-type': 'application/json' };
      const go = (path, init) => fetch(at + path, init).then(
        async (answer) => ({ type: answer.type, text: await answer.text() }), String);
      const found = [
        await go('/hub/projects'), await go('/hub/nonces', { method: 'POST', headers: json, body: '{}' }),
        await go('/p/${slugAt(0)}/a2a/execute', { method: 'POST', mode: 'no-cors', body: '{}' }),
        await go('/', { mode: 'no-cors' }),
        await import(at + '/hub/sign-in.js').then(() => 'imported', String),
        (await indexedDB.databases()).map(({ name }) => name).join(),
      ];
      const frame = document.createElement('iframe');
      frame.src = at + '/';
      document.body.append(frame);
      await new Promise((resolve) => { frame.onload = resolve; setTimeout(resolve, 2000); });
      try { found.push(frame.contentDocument.title); } catch (error) { found.push('no frame'); }
      return JSON.stringify(found);
    })()`);
    expect(tries).not.toMatch(/"nonce|slug|"imported"|agent-task-server|All projects/);
    expect(JSON.parse(String(tries)).at(-1)).not.toBe('All projects – Agent Task Server');
    await tab.close();
  });

  test('revoke ends the tab at once, and agent open signs it in again', {
    tags: ['slow'],
  }, async () => {
    const sessions = JSON.parse((await hub.hub('sessions', '--json')).out);
    expect(sessions).toEqual([
      expect.objectContaining({
        id: expect.stringMatching(/^[0-9a-f]{12}$/),
        user_agent: expect.stringContaining('Chrome'),
      }),
    ]);
    expect(readFileSync(join(hub.folder, 'logins.json'), 'utf8')).not.toContain('"d"');

    expect((await hub.hub('revoke', sessions[0].id)).out).toContain('signed 1 browser out');

    await page.getByText('Open this page from your terminal').waitFor();
    await page.goto(await hub.address(0));
    await page.getByRole('link', { name: 'Board' }).waitFor();
    expect(problems.filter((each) => !each.includes('Failed to fetch'))).toEqual([]);
  });
});
