import type { Page } from 'playwright-core';
import { expect, onTestFinished, test, vi } from 'vitest';
import { noBrowser, startBrowser, watchPage } from '../support/browser.ts';
import { describeUnless } from '../support/needs.ts';
import { openPageProject } from './project.ts';

/** The main job without a mouse: only Tab, Enter and text are sent. */

/** What has the focus: its name for a reader, and whether its focus can be seen. */
const focused = `(() => {
  const element = document.activeElement;
  if (element === null || element === document.body) return { name: '', isSeen: true };
  const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(element);
  const label = element.labels?.[0]?.textContent ?? '';
  const name = element.getAttribute('aria-label') ?? (label || element.textContent || '');
  const isOutlined = outlineStyle !== 'none' && Number.parseFloat(outlineWidth) > 0;
  return { name: name.trim(), isSeen: isOutlined || boxShadow !== 'none' };
})()`;

const stopsAtMost = 150;

const keyboardOf = (page: Page) => {
  const hidden = new Set<string>();
  /** Presses Tab until what begins with `name` has the focus. */
  const tabTo = async (name: string): Promise<void> => {
    const passed: string[] = [];
    for (let stop = 0; stop < stopsAtMost; stop += 1) {
      await page.keyboard.press('Tab');
      const now = (await page.evaluate(focused)) as { name: string; isSeen: boolean };
      if (!now.isSeen) hidden.add(now.name.slice(0, 60));
      if (now.name.startsWith(name)) return;
      passed.push(now.name.slice(0, 30));
    }
    throw new Error(`Tab never reached ${name}; it passed ${[...new Set(passed)].join(', ')}`);
  };
  const press = async (name: string): Promise<void> => {
    await tabTo(name);
    await page.keyboard.press('Enter');
  };
  return { tabTo, press, hidden };
};

describeUnless(noBrowser)('the page without a mouse', () => {
  test('a task is created, allowed, read, sent back and merged with the keyboard alone', {
    tags: ['slow'],
  }, async () => {
    const [project, browser] = await Promise.all([openPageProject(onTestFinished), startBrowser()]);
    onTestFinished(() => browser.close());
    await project.agent('server', 'start');
    const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    page.setDefaultTimeout(15_000);
    const problems = watchPage(page);
    const { tabTo, press, hidden } = keyboardOf(page);
    const tasks = async () => JSON.parse((await project.agent('list', '--json')).out);
    const until = (id: string, wanted: object) =>
      vi.waitFor(async () => expect(await project.show(id)).toMatchObject(wanted), 15_000);
    await page.goto(await project.address());
    await page.getByRole('link', { name: 'Board' }).waitFor();

    await press('New task');
    await page.getByLabel('What to do').waitFor();
    await tabTo('What to do');
    await page.keyboard.type('Look around');
    await tabTo('Role');
    await page.keyboard.type('reviewer');
    await press('Create and run');
    await page.getByRole('button', { name: 'Allow' }).first().waitFor();
    await press('Allow');
    const [{ task_id: looked }] = await tasks();
    await until(looked, { status: 'complete' });

    const id = await project.create('Change a file', '--role', 'engineer');
    await press('Board');
    await page.getByRole('link', { name: 'Change a file' }).waitFor();
    await press(id);
    await press('Run');
    await until(id, { status: 'complete', attempt: 1 });
    await press('Diff');
    await page.getByRole('button', { name: 'Comment on line 2 of src/a.js' }).waitFor();
    await press('Comment on line 2 of src/a.js');
    await page.keyboard.type('Say why.');
    await press('Add comment');
    await press('Send back with 1 comment');
    await until(id, { status: 'complete', attempt: 2 });
    await page.getByRole('button', { name: 'Merge' }).waitFor();
    await press('Merge');
    await vi.waitFor(
      async () => expect((await project.show(id)).work.merged_at).toBeDefined(),
      15_000,
    );

    expect([...hidden]).toEqual([]);
    expect(problems).toEqual([]);
  });
});
