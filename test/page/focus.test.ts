import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { noBrowser, startBrowser } from '../support/browser.ts';
import { describeUnless } from '../support/needs.ts';
import { endOfFile } from '../support/temporary.ts';
import { openPageProject } from './project.ts';

/** The keys of the page, and where the focus goes when what had it is gone. */

const atEnd = endOfFile();
const tabsAtMost = 60;

describeUnless(noBrowser)('the focus on the page', () => {
  let project: Awaited<ReturnType<typeof openPageProject>>;
  let browser: Browser;
  let page: Page;

  beforeAll(async () => {
    [project, browser] = await Promise.all([openPageProject(atEnd), startBrowser()]);
    await project.agent('server', 'start');
    page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    page.setDefaultTimeout(10_000);
    await page.goto(await project.address());
    await page.getByRole('link', { name: 'Board' }).waitFor();
  });
  afterAll(() => browser?.close());

  const press = async (...keys: string[]): Promise<void> => {
    for (const key of keys) await page.keyboard.press(key);
  };
  const hasFocus = async (target: Locator): Promise<boolean> =>
    (await target.and(page.locator(':focus')).count()) > 0;
  const tabTo = async (target: Locator): Promise<void> => {
    await target.first().waitFor();
    for (let tab = 0; tab < tabsAtMost && !(await hasFocus(target)); tab += 1) await press('Tab');
    expect(await hasFocus(target)).toBe(true);
    await seesFocus();
  };
  /** The focus is on an element of the page, which shows it: a ring, or the edge of its row. */
  const seesFocus = () =>
    vi.waitFor(async () =>
      expect(
        await page.evaluate(`(() => {
            const focused = document.activeElement;
            const { outlineStyle, borderLeftColor } = getComputedStyle(focused);
            const isEdged = borderLeftColor !== 'rgba(0, 0, 0, 0)' && focused.matches('.need');
            return focused !== document.body && (outlineStyle !== 'none' || isEdged);
          })()`),
      ).toBe(true),
    );
  const button = (name: string) => page.getByRole('button', { name });
  const only = async () => JSON.parse((await project.agent('list', '--json')).out)[0];

  test('a task is created, run, sent back with a comment on a line, and merged', {
    tags: ['slow'],
  }, async () => {
    await press('c');
    await tabTo(page.getByLabel('What to do'));
    await page.keyboard.type('Write the first file');
    await tabTo(page.getByLabel('Role'));
    await page.keyboard.type('engineer');
    await tabTo(button('Create and run'));
    await press('Enter');
    await page.getByText('Ready to merge').first().waitFor();

    await press('v');
    await page.locator('.diff-line').first().waitFor();
    await press('j', 'j');
    await seesFocus();
    await press('Enter');
    await page.locator('textarea:focus').waitFor();
    await page.keyboard.type('Say why.');
    await tabTo(button('Add comment'));
    await press('Enter');
    await page.getByText('Send back with 1 comment').waitFor();
    await seesFocus();
    await press('s');
    await vi.waitFor(
      async () => expect(await only()).toMatchObject({ status: 'complete', attempt: 2 }),
      15_000,
    );
    const task = await project.show((await only()).task_id);
    expect(task.review.comments).toMatchObject([{ path: 'src/a.js', line: 2, text: 'Say why.' }]);

    await page.getByText('Ready to merge').first().waitFor();
    await press('m');
    await page.getByText('Merged', { exact: true }).first().waitFor();
    await press('g', 'n');
  });

  test('the form that changes a task has the focus in its title at once', async () => {
    await project.create('Change me');
    await press('g', 'b');
    await page.getByRole('link', { name: 'Change me' }).click();
    await page.getByRole('heading', { name: 'Change me' }).waitFor();

    await press('e');

    await page.locator('input:focus').waitFor();
    expect(await page.locator('input:focus').inputValue()).toBe('Change me');
    await press('Escape', 'Escape');
    await page.getByRole('heading', { name: 'Change me' }).waitFor();
    await press('g', 'n');
  });

  test('a call is allowed and a question answered, and the focus stays in the list', {
    tags: ['slow'],
  }, async () => {
    const [first, second, third] = [
      await project.create('Look at it', '--role', 'reviewer'),
      await project.create('Choose a colour', '--role', 'product-manager'),
      await project.create('Look again', '--role', 'reviewer'),
    ];
    await project.agent('run', first, '--async');
    await page.getByRole('link', { name: 'Look at it' }).waitFor();
    await project.agent('run', second, '--async');
    await page.getByText('Red or blue?').waitFor();
    await project.agent('run', third, '--async');
    await page.getByRole('link', { name: 'Look again' }).waitFor();

    await press('j');
    await seesFocus();
    await press('a');
    await page.getByRole('link', { name: 'Look at it' }).waitFor({ state: 'detached' });
    await seesFocus();
    expect(await hasFocus(page.locator('li', { hasText: 'Choose a colour' }))).toBe(true);
    await press('i');
    await page.keyboard.type('blue');
    await press('Control+Enter');
    await page.getByText('Red or blue?').waitFor({ state: 'detached' });
    await seesFocus();
    expect(await hasFocus(page.locator('li', { hasText: 'Look again' }))).toBe(true);
  });
});
