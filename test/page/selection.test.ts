import axe from 'axe-core';
import { expect, onTestFinished, test, vi } from 'vitest';
import { noBrowser, startBrowser, watchPage } from '../support/browser.ts';
import { describeUnless } from '../support/needs.ts';
import { openPageProject } from './project.ts';

/** Several tasks of the board at once, without a mouse. */

describeUnless(noBrowser)('several tasks', () => {
  test('are run, cancelled and closed by the keyboard, and the others are left alone', {
    tags: ['slow'],
  }, async () => {
    const [project, browser] = await Promise.all([openPageProject(onTestFinished), startBrowser()]);
    onTestFinished(() => browser.close());
    await project.agent('server', 'start');
    const [one = '', two = '', other = ''] = await Promise.all(
      ['First', 'Second', 'Other'].map((title) => project.create(title, '--label', 'role:tester')),
    );
    const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    page.setDefaultTimeout(10_000);
    const problems = watchPage(page);
    await page.goto(await project.address());
    await page.getByRole('link', { name: 'Board' }).click();
    await page.getByRole('link', { name: 'Other' }).waitFor();
    const statuses = () =>
      Promise.all([one, two, other].map(async (id) => (await project.show(id)).status));
    const select = async (...names: readonly string[]): Promise<void> => {
      // The selection before it ends with the answer, which the terminal may see earlier.
      await page.getByText('2 selected').waitFor({ state: 'hidden' });
      await page.keyboard.press('x');
      for (const name of names) {
        await page.getByRole('checkbox', { name: `Select ${name}`, exact: true }).focus();
        await page.keyboard.press('Space');
      }
      await page.getByText('2 selected').waitFor();
    };
    const press = async (name: string): Promise<void> => {
      await page.getByRole('button', { name, exact: true }).focus();
      await page.keyboard.press('Enter');
    };
    const until = (wanted: readonly string[]) =>
      vi.waitFor(async () => expect(await statuses()).toEqual(wanted), 10_000);

    await select('First', 'Second');
    await page.evaluate(axe.source);
    const { violations } = (await page.evaluate('axe.run()')) as {
      violations: readonly { id: string; impact: string }[];
    };
    expect(violations.filter(({ impact }) => /serious|critical/.test(impact))).toEqual([]);
    await press('Run');
    await until(['started', 'started', 'queued']);

    await select('all of Working');
    await press('Cancel');
    await press('Cancel 2, their processes end');
    await until(['cancelled', 'cancelled', 'queued']);

    await select('First', 'Second');
    await press('Close as they are');
    await until(['complete', 'complete', 'queued']);

    await page.getByRole('combobox', { name: 'Columns' }).selectOption('role');
    const tester = page.getByRole('region', { name: 'tester', exact: true });
    await tester.getByRole('link', { name: 'First' }).waitFor();
    expect(await page.locator('.column').count()).toBe(1);
    expect(problems).toEqual([]);
  });
});
