import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { noBrowser, startBrowser } from '../support/browser.ts';
import { describeUnless } from '../support/needs.ts';
import { openPageProject } from './project.ts';

/** Says when somebody works in another window, and keeps what the page shows on the desktop. */
const watchDesktop = `
  window.shown = [];
  window.isElsewhere = false;
  document.hasFocus = () => !isElsewhere;
  const Real = Notification;
  window.Notification = class extends Real {
    constructor(title, options) { super(title, options); shown.push(this); }
    static requestPermission() { window.asked = (window.asked ?? 0) + 1; return Real.requestPermission(); }
  };
`;

describeUnless(noBrowser)('notifications of the page', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await startBrowser();
  });
  afterAll(() => browser?.close());

  test('they are asked for by a click, shown while nobody looks, and open the task', {
    tags: ['slow'],
  }, async ({ onTestFinished }) => {
    const project = await openPageProject(onTestFinished);
    await project.agent('server', 'start');
    const context = await browser.newContext({ permissions: ['notifications'] });
    const page = await context.newPage();
    await page.addInitScript(watchDesktop);
    await page.goto(await project.address());
    const titles = () => page.evaluate('shown.map(({ body }) => body)');
    const ask = async (title: string) => {
      const id = await project.create(title);
      await project.agent('product-manager', id, '--async');
      await page.getByRole('link', { name: title }).waitFor();
      return id;
    };
    await ask('before the click');
    expect(await page.evaluate('window.asked')).toBeUndefined();

    await page.getByRole('button', { name: 'Notify me on the desktop' }).click();
    await page.getByRole('button', { name: 'Stop notifications' }).waitFor();
    await ask('while I look');
    await page.evaluate('isElsewhere = true');
    const id = await ask('while I am away');
    await vi.waitFor(async () => expect(await titles()).toEqual([`${id}: while I am away`]));
    await page.evaluate('shown[0].onclick()');

    await vi.waitFor(() => expect(page.url()).toContain(`#/task/${id}`));
    await page.reload();
    await page.evaluate(`location.hash = '#/needs-you'`);
    await page.getByRole('button', { name: 'Stop notifications' }).waitFor();
  });
});
