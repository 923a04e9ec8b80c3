import axe from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { noBrowser, startBrowser, watchPage } from '../support/browser.ts';
import { describeUnless } from '../support/needs.ts';
import { endOfFile } from '../support/temporary.ts';
import { openPageProject } from './project.ts';

/** How many lines the facts of a row take, and how many of them begin with a dot that is seen. */
const lineStarts = `(() => {
  const facts = [...document.querySelectorAll('.facts > *')];
  const top = (fact) => fact?.getBoundingClientRect().top;
  const first = facts.filter((fact) => top(fact) !== top(fact.previousElementSibling));
  const dotted = first.filter((fact) => {
    const { content, width } = getComputedStyle(fact, '::before');
    const { clipPath } = getComputedStyle(fact.parentElement);
    const cut = Number(/inset\\(0(?:px)? 0(?:px)? 0(?:px)? ([\\d.]+)px/.exec(clipPath)?.[1] ?? 0);
    const edge = fact.parentElement.getBoundingClientRect().left + cut;
    return content !== 'none' && fact.getBoundingClientRect().left + (Number.parseFloat(width) || 3) > edge;
  });
  return { lines: first.length, dotted: dotted.length };
})()`;

/** What changes a task is pressed on the page, and seen by the CLI. */

const atEnd = endOfFile();

const slowly = {
  title: 'Write slowly',
  turns: [
    { calls: [{ tool: 'write', arguments: { path: 'src/slow.js', content: 'one\ntwo\n' } }] },
    { calls: [{ tool: 'bash', arguments: { command: 'exec sleep 600' } }] },
  ],
};

describeUnless(noBrowser)('changes of a task', () => {
  let project: Awaited<ReturnType<typeof openPageProject>>;
  let browser: Browser;
  let page: Page;
  let problems: readonly string[];

  beforeAll(async () => {
    [project, browser] = await Promise.all([openPageProject(atEnd, [slowly]), startBrowser()]);
    await project.agent('server', 'start');
    page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    page.setDefaultTimeout(15_000);
    problems = watchPage(page);
    await page.goto(await project.address());
    await page.getByRole('link', { name: 'Board' }).waitFor();
  });
  afterAll(() => browser?.close());

  const open = async (path: string): Promise<void> => {
    await page.evaluate(`location.hash = ${JSON.stringify(`#/${path}`)}`);
  };
  const press = (name: string) => page.getByRole('button', { name, exact: true }).click();
  const until = (id: string, wanted: object) =>
    vi.waitFor(async () => expect(await project.show(id)).toMatchObject(wanted), 15_000);
  const ids = async (): Promise<readonly string[]> =>
    JSON.parse((await project.agent('list', '--json')).out).map(
      ({ task_id }: { task_id: string }) => task_id,
    );

  test('cancel, retry, close and reopen', { tags: ['slow'] }, async () => {
    const id = await project.create('Sleep', '--role', 'tester');
    await project.agent('run', id, '--async');
    await until(id, { status: 'started', attempt: 1 });
    await open(`task/${id}`);
    const chart = page.getByRole('region', { name: 'Statechart' });
    await chart.locator('.state.here').getByText('acting', { exact: true }).waitFor();
    await page.evaluate(axe.source);
    const { violations } = await page.evaluate<{ violations: readonly object[] }>('axe.run()');
    expect(violations).toEqual([]);
    await press('Cancel');
    await press('Cancel it, its processes end');
    await until(id, { status: 'cancelled' });

    await page.getByRole('button', { name: 'Retry' }).click();
    await until(id, { status: 'started', attempt: 2 });
    await press('Cancel');
    await press('Cancel it, its processes end');
    await until(id, { status: 'cancelled', attempt: 2 });

    await press('Close as it is');
    await until(id, { status: 'complete' });
    await press('Reopen');
    await until(id, { status: 'queued', attempt: 2 });
    await page.getByRole('button', { name: 'Run', exact: true }).waitFor();
  });

  test('a running task shows what it has changed so far', { tags: ['slow'] }, async () => {
    const id = await project.create('Write slowly', '--role', 'tester');
    await project.agent('run', id, '--async');
    await until(id, { phase: 'acting', usage: { turns: 2 } });
    await open(`task/${id}`);

    await page.getByRole('tab', { name: 'Changes' }).click();

    await page.getByRole('listitem').getByText('src/slow.js').waitFor();
    await page.getByText('+2', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'See the lines' }).click();
    await page.getByText('two', { exact: true }).waitFor();
    await page.goBack();
    await press('Cancel');
    await press('Cancel it, its processes end');
    await until(id, { status: 'cancelled' });
    await page.getByRole('tab', { name: 'Log' }).waitFor();
    expect(await page.getByRole('tab', { name: 'Changes' }).count()).toBe(0);
  });

  test('a task that only waits has no processes to end, and is not closed before what it waits for', {
    tags: ['slow'],
  }, async () => {
    const first = await project.create('First of two');
    const id = await project.create('Second of two', '--deps', first);
    await project.agent('engineer', id, '--when-ready', '--async');
    await until(id, { phase: 'waiting_for_dependencies' });
    await open(`task/${id}`);
    await page.getByRole('heading', { name: 'Second of two' }).waitFor();
    await page.getByText('It begins by itself.').waitFor();
    expect(await page.locator('.timeline').count()).toBe(0);
    expect(await page.getByRole('button', { name: 'Close as it is' }).count()).toBe(0);
    await press('Cancel');
    await press('Cancel it, it does not start');
    await until(id, { status: 'cancelled' });

    await press('Close as it is');

    const words = `task has unmet dependencies [${first}]: complete these first, or remove them under Edit`;
    await page.getByRole('alert').getByText(words).waitFor();
    expect(await project.show(id)).toMatchObject({ status: 'cancelled' });
  });

  test('a task that was closed by hand says so, and why', { tags: ['slow'] }, async () => {
    const id = await project.create('Close me');
    await project.agent('close', id, '--reason', 'done elsewhere');
    await open(`task/${id}`);

    await page.getByText('closed by hand: done elsewhere').waitFor();
    await page.getByText('No agent wrote results.').waitFor();
    expect(await page.locator('.timeline').count()).toBe(0);
  });

  test('edit, add and remove a dependency', { tags: ['slow'] }, async () => {
    const first = await project.create('First');
    const second = await project.create('Second');
    await open(`task/${second}/edit`);
    const other = page.getByLabel('Task that must be complete first');
    await other.fill('bd-none1');
    await press('Add dependency');
    await page.getByRole('alert').getByText('bd-none1 does not exist').waitFor();
    await other.fill('First');
    await press('Add dependency');
    await until(second, { dependencies: [first] });
    expect(await page.getByRole('alert').count()).toBe(0);

    await open(`task/${first}/edit`);
    await page.getByRole('heading', { name: `Edit ${first}` }).waitFor();
    await other.fill(second);
    await press('Add dependency');
    await page.getByRole('alert').getByText('cycle').waitFor();
    expect(await project.show(first)).toMatchObject({ dependencies: [] });

    await open(`task/${second}/edit`);
    await press(`Remove the dependency on ${first}`);
    await until(second, { dependencies: [] });
    await page.getByLabel('Title').fill('Second, changed');
    await page.getByLabel('Labels').fill('night');
    await press('Save');
    await page.getByRole('heading', { name: 'Second, changed' }).waitFor();
    expect(await project.show(second)).toMatchObject({
      title: 'Second, changed',
      labels: ['night'],
    });
  });

  test('delete asks first, then the task is gone, from the board of another page too', {
    tags: ['slow'],
  }, async () => {
    const id = await project.create('Delete me');
    const other = await browser.newPage();
    other.setDefaultTimeout(15_000);
    await other.goto(await project.address());
    await other.getByRole('link', { name: 'Board' }).click();
    const card = other.getByRole('link', { name: 'Delete me' });
    await card.waitFor();
    await open(`task/${id}/edit`);
    await press('Delete');
    expect(await ids()).toContain(id);
    await press('Delete it, this cannot be undone');
    await vi.waitFor(async () => expect(await ids()).not.toContain(id), 15_000);

    await card.waitFor({ state: 'detached' });
    await other.close();
    await page.getByRole('heading', { name: 'Board' }).waitFor();
    await open(`task/${id}`);
    await page.getByText(id).first().waitFor();
    expect(await page.getByRole('button', { name: 'Delete' }).count()).toBe(0);
  });

  test('no line of facts begins with a dot on a narrow screen', { tags: ['slow'] }, async () => {
    const id = await project.create('Choose a colour', '--role', 'product-manager');
    await project.create('Paint it', '--deps', id);
    await project.agent('run', id, '--async');
    await page.setViewportSize({ width: 300, height: 700 });
    await open('needs-you');
    await page.getByText('holds up 1 task').waitFor();

    const found = await page.evaluate<{ lines: number; dotted: number }>(lineStarts);

    await page.setViewportSize({ width: 1280, height: 800 });
    expect(found.lines).toBeGreaterThan(1);
    expect(found.dotted).toBe(0);
  });

  test('the chart shows the state of a task that asks, without scrolling', {
    tags: ['slow'],
  }, async () => {
    const id = await project.create('Look at it', '--role', 'reviewer');
    await project.agent('run', id, '--async');
    await until(id, { phase: 'awaiting_approval' });
    await open(`task/${id}`);
    const here = page.locator('.chart-part .state.here');
    await here.locator('text', { hasText: 'awaitingApproval' }).waitFor();

    await vi.waitFor(async () => {
      const { y = 0, height = 0 } = (await here.boundingBox()) ?? {};
      expect(y + height).toBeGreaterThan(0);
      expect(y + height).toBeLessThan(800);
    });
  });

  test('no error was logged', () => expect(problems).toEqual([]));
});
