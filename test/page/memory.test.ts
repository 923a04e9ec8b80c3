import type { Browser, CDPSession } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readPage } from '../../src/cli/page/read-page.ts';
import { noBrowser, startBrowser } from '../support/browser.ts';
import { describeUnless } from '../support/needs.ts';
import { startServer, token } from '../support/running.ts';
import { endOfFile } from '../support/temporary.ts';
import { openPageProject } from './project.ts';

const atEnd = endOfFile();

/** How many objects of a kind the page holds, after all that can be collected is. */
const countHeld = async (session: CDPSession, kind: string, isOne: string): Promise<number> => {
  const { result } = await session.send('Runtime.evaluate', { expression: `${kind}.prototype` });
  const { objects } = await session.send('Runtime.queryObjects', {
    prototypeObjectId: result.objectId ?? '',
  });
  const counted = await session.send('Runtime.callFunctionOn', {
    objectId: objects.objectId ?? '',
    functionDeclaration: `function () { return this.filter((one) => ${isOne}).length; }`,
    returnByValue: true,
  });
  await session.send('Runtime.releaseObject', { objectId: objects.objectId ?? '' });
  return counted.result.value;
};
const listsOfEntries = (session: CDPSession) => countHeld(session, 'Array', 'one[0]?.seq > 0');
const entriesIn = (session: CDPSession) =>
  countHeld(session, 'Object', 'one.seq > 0 && one.timestamp !== undefined');

/** A server with one task that nobody runs, and its page, signed in. */
const openTaskPage = async (browser: Browser) => {
  const server = await startServer({ page: readPage() });
  const { task_id: id } = await server.service.create({ description: 'Follow me' });
  const context = await browser.newContext();
  await context.addInitScript(
    `sessionStorage.setItem('agent-task-server.session', ${JSON.stringify(token)})`,
  );
  const page = await context.newPage();
  const session = await context.newCDPSession(page);
  let nth = 0;
  const write = async (count: number): Promise<void> => {
    for (let left = count; left > 0; left -= 500)
      await server.system.journal.commit({
        entries: Array.from({ length: Math.min(left, 500) }, () => {
          nth += 1;
          const data = JSON.stringify({ level: 'info', message: `line ${nth}` });
          return { taskId: id, attempt: 0, type: 'log', at: Date.now(), data, cause: null };
        }),
      });
  };
  const open = (view: string) => page.goto(`${server.base}/#/${view}/${id}`);
  return { server, id, page, session, write, open };
};

describeUnless(noBrowser)('the memory of the page', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await startBrowser();
  });
  afterAll(() => browser?.close());

  test('a page that follows a task keeps its entries, and no list that it drew before', {
    tags: ['slow'],
  }, async () => {
    const project = await openPageProject(atEnd);
    await project.agent('server', 'start');
    const id = await project.create('Follow me');
    const page = await browser.newPage();
    await page.goto(await project.address(id));
    const session = await page.context().newCDPSession(page);
    const entries = page.getByRole('log').locator('.log-line');

    for (let nth = 1; nth <= 30; nth += 1) {
      await project.agent('edit', id, '--priority', `${nth % 4}`);
      await entries.nth(nth - 1).waitFor();
    }

    expect(await listsOfEntries(session)).toBeLessThan(10);
  });

  test('entries that come while older ones are read wait up to a number, and none is lost', {
    tags: ['slow'],
  }, async () => {
    const { server, id, page, session, write, open } = await openTaskPage(browser);
    let answer = (): void => {};
    const held = new Promise<void>((resolve) => {
      answer = resolve;
    });
    await page.route('**/a2a/execute', async (route) => {
      const response = await route.fetch();
      if (route.request().postData()?.includes('"history"')) await held;
      await route.fulfill({ response });
    });
    await open('task');
    await page.getByText('Reading the log').waitFor();
    await write(12_000);
    // The stream is in order: all before was received.
    await server.service.edit(id, { title: 'All was written' });
    await page.getByRole('heading', { name: 'All was written' }).waitFor();

    expect(await entriesIn(session)).toBeLessThan(5_000);
    answer();
    await page.getByText('line 12000').waitFor();
    await page.getByRole('log').getByText('edited').waitFor();
    expect(await entriesIn(session)).toBeGreaterThan(12_000);
    expect(await page.getByText('Only the newest').count()).toBe(0);
  });

  test('a page says in each view that it has only the newest entries of a task', {
    tags: ['slow'],
  }, async () => {
    const { id, page, session, write, open } = await openTaskPage(browser);
    const said = page.getByText(`Only the newest entries are here; agent logs ${id} prints all.`);
    await write(25_000);

    await open('task');
    await page.getByText('line 25000').waitFor();
    await said.waitFor();
    expect(await entriesIn(session)).toBeLessThan(23_000);
    await open('machines');
    await said.waitFor();
  });
});
