import axe from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { noBrowser, startBrowser, watchPage } from '../support/browser.ts';
import { commitIn, gitIn } from '../support/git.ts';
import { describeUnless } from '../support/needs.ts';
import { endOfFile } from '../support/temporary.ts';
import { openPageProject } from './project.ts';

/** The queue of merges, from the first press to the undo, without git and without a terminal. */

const atEnd = endOfFile();

const doing = (title: string, tool: string, args: object) => ({
  title,
  turns: [
    { calls: [{ tool, arguments: args }] },
    { calls: [{ tool: 'finish', arguments: { status: 'done', summary: 'done' } }] },
  ],
});
const writing = (title: string, path: string, content = 'x\n') =>
  doing(title, 'write', { path, content });

const scripts = [
  doing('Rename total', 'bash', { command: 'mv total sum' }),
  writing('Call total', 'calls-1', 'total\n'),
  writing('Say it here', 'said', 'here\n'),
  writing('Say it there', 'said', 'there\n'),
  ...['one', 'two', 'three', 'four'].map((name) => writing(`Write ${name}`, name)),
  writing('Build on one', 'on-one'),
  writing('Hold the queue', 'held'),
];

/** `total` is defined once, and whoever calls it finds it. */
const check =
  'seq 30; [ ! -e held ] || [ "$(cat held)" != x ] || sleep 8; for f in calls-*; do [ ! -e "$f" ] || [ -e "$(cat "$f")" ] || { echo "$f calls what is gone"; exit 1; }; done';

describeUnless(noBrowser)('merging on the page', () => {
  let project: Awaited<ReturnType<typeof openPageProject>>;
  let browser: Browser;
  let page: Page;
  let problems: readonly string[];

  beforeAll(async () => {
    [project, browser] = await Promise.all([openPageProject(atEnd, scripts), startBrowser()]);
    commitIn(project.root, 'total', 'defined\n');
    await project.agent('config', 'set', 'merge.verify', JSON.stringify([check]));
    await project.agent('server', 'start');
    page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    page.setDefaultTimeout(15_000);
    problems = watchPage(page);
    await page.goto(await project.address());
    await page.getByRole('link', { name: 'Board' }).waitFor();
  }, 120_000);
  afterAll(() => browser?.close());

  const to = (view: string) => page.evaluate(`location.hash = ${JSON.stringify(`#/${view}`)}`);
  /** The row of a task in Needs you. */
  const row = (title: string) =>
    page.locator('li.need', { has: page.getByRole('link', { name: title }) });
  const complete = async (title: string): Promise<string> => {
    const id = await project.create(title, '--role', 'engineer');
    await project.agent('run', id);
    return id;
  };
  const merge = async (id: string) => (await project.show(id)).work.merge;

  test('a refused merge shows the command, its output, and the tasks with which it fails', {
    tags: ['slow'],
  }, async () => {
    const renamed = await complete('Rename total');
    const called = await complete('Call total');
    await project.agent('merge', renamed);
    await to('needs-you');
    await row('Call total').getByRole('button', { name: 'Merge' }).click();
    const refused = row('Call total');
    await refused.getByText(`it fails together with ${renamed} (landed)`).first().waitFor();

    await refused.getByText(/^Show \d+ lines more$/).click();
    await refused.getByText('calls-1 calls what is gone').waitFor();
    expect(await refused.locator('code').textContent()).toBe(check);
    expect(await refused.locator('.task-line').textContent()).toBe(`Rename total${renamed}`);
    await to(`task/${called}`);
    await page.locator('.task-asks .task-line').waitFor();
    expect(await merge(called)).toMatchObject({ state: 'refused', command: check });
  });

  test('a conflict shows the files', { tags: ['slow'] }, async () => {
    const here = await complete('Say it here');
    await complete('Say it there');
    await project.agent('merge', here);
    await to('needs-you');
    await row('Say it there').getByRole('button', { name: 'Merge' }).click();

    await row('Say it there').locator('code', { hasText: 'said' }).waitFor();
    await page.evaluate(axe.source);
    const { violations } = (await page.evaluate('axe.run()')) as { violations: readonly unknown[] };
    expect(violations).toEqual([]);
  });

  test('all that is ready is merged by one press, and one of them is taken back', {
    tags: ['slow'],
  }, async () => {
    const [one, two] = [await complete('Write one'), await complete('Write two')];
    await complete('Write three');
    const on = await project.create('Build on one', '--role', 'engineer', '--deps', one);
    await project.agent('run', on);
    await to('needs-you');
    // The two that were refused before are refused again.
    await page.getByRole('button', { name: 'Merge all 6' }).click();
    for (const id of [one, two, on])
      await expect.poll(() => merge(id), { timeout: 30_000 }).toEqual({ state: 'landed' });
    for (const title of ['Call total', 'Say it there'])
      await row(title).getByText('Merge refused').waitFor();

    await to(`task/${one}`);
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByRole('button', { name: 'Undo it, the task is open again' }).click();
    await page.getByText(`landed, and so did ${on}, which depends on it`).waitFor();
    await page.getByRole('button', { name: 'Undo it with what depends on it' }).click();
    await page.getByRole('button', { name: 'Run' }).waitFor();
    await page.getByRole('button', { name: 'Undo' }).waitFor({ state: 'detached' });
    await page.getByText('Merged, tested with').waitFor({ state: 'detached' });
    await to('needs-you');
    await page.locator('.decided').getByText('Undone in main').first().waitFor();
    await page.locator('.decided').getByText('Merged into main').first().waitFor();
    const files = gitIn(project.root, 'ls-tree', '--name-only', 'main');
    expect(files).toContain('two');
    expect(files.split('\n')).not.toContain('one');
    expect(files).not.toContain('on-one');
  });

  test('a merge whose test takes long goes on when the page is closed, and its chart is lit', {
    tags: ['slow'],
  }, async () => {
    const id = await complete('Hold the queue');
    await to('needs-you');
    await row('Hold the queue').getByRole('button', { name: 'Merge' }).click();
    await page.getByRole('link', { name: '1 merge in the queue' }).click();
    await page.getByRole('tab', { name: 'Merge queue testing', selected: true }).waitFor();
    await page.locator('.machine-chart .task-line', { hasText: 'Hold the queue' }).waitFor();
    expect(await page.locator('.chart .state.here').textContent()).toContain('testing');
    await page.reload();
    await page.getByRole('tab', { name: 'Merge queue testing' }).click();

    await page.getByRole('heading', { name: 'Nothing is merged now' }).waitFor();
    expect(await merge(id)).toEqual({ state: 'landed' });

    // What is there is tested for eight seconds now.
    const four = await complete('Write four');
    await to(`task/${four}`);
    await page.getByRole('button', { name: 'Merge' }).click();
    await page.getByRole('button', { name: 'Take out of the queue' }).click();
    await expect.poll(() => merge(four)).toBeUndefined();
    // A second press of Merge at once counts as one.
    await page.waitForTimeout(600);
    await page.getByRole('button', { name: 'Merge' }).click();
    await page.getByRole('button', { name: 'Undo' }).click({ timeout: 30_000 });
    await page.getByRole('button', { name: 'Undo it, the task is open again' }).click();
    await page.getByText('its undo is tested').waitFor();
    await page.getByRole('button', { name: 'Run' }).waitFor();
    await page.getByRole('button', { name: 'Undo' }).waitFor({ state: 'detached' });
    await page.getByText('Merged, tested with').waitFor({ state: 'detached' });
  });

  test('an update that is tested is shown, and ended', { tags: ['slow'] }, async () => {
    await to('needs-you');
    const refused = row('Call total');
    await refused.getByRole('button', { name: 'Update' }).click();
    await refused.waitFor({ state: 'detached' });
    await to('board');
    await page.getByText('its update is tested').waitFor();
    await page.getByRole('link', { name: 'Call total' }).first().click();
    await page.getByRole('button', { name: 'End its update' }).click();
    await page.getByRole('button', { name: 'Update' }).waitFor();
    await page.getByText('Merge refused').first().waitFor();
  });

  test('no error was logged', () => expect(problems).toEqual([]));
});
