import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { noPictures, startBrowser } from '../support/browser.ts';
import { describeUnless } from '../support/needs.ts';
import { endOfFile } from '../support/temporary.ts';
import { openPictures } from './pictures.ts';
import { openPageProject } from './project.ts';

/** Every view looks as its committed picture. UPDATE_PICTURES=1 writes the pictures anew. */

const atEnd = endOfFile();
/** Of the tiles: other ids and ages change fewer, a broken view more. */
const tolerance = 0.06;
/** Fonts of equal widths on most machines; bars are as long as this machine is slow. */
const even = `
  const { style } = document.documentElement;
  style.setProperty('--text', '"Liberation Sans", Arimo, Arial, Helvetica');
  style.setProperty('--mono', '"Liberation Mono", Cousine, "Courier New"');
  for (const chart of document.querySelectorAll('.timeline svg')) chart.style.visibility = 'hidden';
  document.activeElement?.blur();`;
const desktop = { width: 1280, height: 800 };
const phone = { width: 375, height: 800 };
const failing = {
  role: 'engineer',
  title: 'Break it',
  turns: [{ say: '', calls: [{ tool: 'finish', arguments: { status: 'failed', summary: 'no' } }] }],
};

describeUnless(noPictures)('pictures of the page', () => {
  let project: Awaited<ReturnType<typeof openPageProject>>;
  let browser: Browser;
  let pictures: Awaited<ReturnType<typeof openPictures>>;
  let page: Page;
  let views: Readonly<Record<string, string>>;

  /** One task of each kind: done, to review, asking, asking for permission, failed, waiting. */
  const work = async (): Promise<string> => {
    const create = (title: string, ...more: string[]) => project.create(title, ...more);
    const design = await create('Design the basket', '--role', 'architect');
    const build = await create('Build it as designed', '--role', 'engineer', '--deps', design);
    const ask = await create('Choose a colour', '--role', 'product-manager');
    const look = await create('Look at it', '--role', 'reviewer', '--deps', build);
    const fail = await create('Break it', '--role', 'engineer');
    await create('Release it', '--role', 'engineer', '--deps', `${look},${ask}`);
    await create('Tell the shops');
    await project.agent('run', design, build);
    await project.agent('run', fail);
    await project.agent('run', ask, '--async');
    await project.agent('run', look, '--async');
    await vi.waitFor(async () => {
      const all = JSON.parse((await project.agent('list', '--json')).out) as {
        awaiting?: object;
      }[];
      expect(all.filter(({ awaiting }) => awaiting !== undefined)).toHaveLength(2);
    }, 30_000);
    return build;
  };

  beforeAll(async () => {
    [project, browser] = await Promise.all([openPageProject(atEnd, [failing]), startBrowser()]);
    await project.agent('server', 'start');
    const id = await work();
    views = {
      'needs-you': 'needs-you',
      board: 'board',
      task: `task/${id}`,
      diff: `task/${id}/diff`,
      edit: `task/${id}/edit`,
      graph: 'graph',
      machines: `machines/${id}`,
      system: 'system',
      new: 'new',
    };
    pictures = await openPictures(browser);
    page = await browser.newPage({ viewport: desktop, reducedMotion: 'reduce' });
    page.setDefaultTimeout(8_000);
    await page.goto(await project.address());
    await page.getByRole('link', { name: 'Board' }).waitFor();
  });
  afterAll(() => browser?.close());

  const open = async (name: string): Promise<void> => {
    await page.evaluate(`location.hash = ${JSON.stringify(`#/${views[name]}`)}`);
    await page.locator('main h1, main h2').first().waitFor();
    const ready: Readonly<Record<string, string>> = {
      task: '.timeline svg',
      diff: '.diff-line',
      machines: '.segments button:has-text("empty")',
      system: '.meter, table',
    };
    await page
      .locator(ready[name] ?? 'main')
      .first()
      .waitFor();
    await page.evaluate(even);
  };

  for (const { colorScheme, viewport, suffix, tags } of [
    { colorScheme: 'light', viewport: desktop, suffix: '', tags: [] },
    { colorScheme: 'dark', viewport: desktop, suffix: '-dark', tags: ['slow'] },
    { colorScheme: 'light', viewport: phone, suffix: '-375', tags: ['slow'] },
  ] as const)
    test(`every view is as its picture, ${colorScheme}, ${viewport.width} wide`, {
      tags: [...tags],
    }, async () => {
      await page.setViewportSize(viewport);
      await page.emulateMedia({ colorScheme });
      const differing: Record<string, number> = {};
      for (const name of Object.keys(views)) {
        await open(name);
        await pictures.keep(page, `${name}${suffix}`);
        const share = await pictures.compare(page, `${name}${suffix}`, tolerance);
        if (share > tolerance) differing[name] = share;
      }

      expect(differing).toEqual({});
    });

  const hide = (selector: string) =>
    `for (const part of document.querySelectorAll('${selector}')) part.style.display = 'none'`;
  test.each([
    ['board', 'a hidden column', hide('.column-needs')],
    ['board', 'no styles', 'for (const sheet of document.styleSheets) sheet.disabled = true'],
    ['diff', 'lost colours', "document.documentElement.style.setProperty('--added', 'none')"],
    ['task', 'a hidden side', hide('.task-side > *')],
    ['machines', 'a hidden chart', hide('.chart')],
  ])('a view that is broken is seen: %s with %s', async (name, _, fault) => {
    await page.setViewportSize(desktop);
    await page.emulateMedia({ colorScheme: 'light' });
    await open(name);
    await page.evaluate(fault);

    const share = await pictures.compare(page, name);
    expect(share).toBeGreaterThan(tolerance);
    await page.reload();
  });
});
