import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { noBrowser, startBrowser, watchPage } from '../support/browser.ts';
import { png } from '../support/images.ts';
import { describeUnless } from '../support/needs.ts';
import { endOfFile } from '../support/temporary.ts';
import { openPageProject } from './project.ts';

const atEnd = endOfFile();

/** Pastes or drops a file, as the browser does when a person does so. */
const give = (how: 'paste' | 'drop', bytes: Buffer, name: string) => `(() => {
  const data = new DataTransfer();
  const bytes = Uint8Array.from(atob(${JSON.stringify(bytes.toString('base64'))}), (c) => c.charCodeAt(0));
  data.items.add(new File([bytes], ${JSON.stringify(name)}, { type: 'image/png' }));
  const more = { bubbles: true, cancelable: true };
  const event = ${JSON.stringify(how)} === 'paste'
    ? new ClipboardEvent('paste', { ...more, clipboardData: data })
    : new DragEvent('drop', { ...more, dataTransfer: data });
  document.querySelector('form.create textarea').dispatchEvent(event);
})()`;

/** The grey of a drawn picture; null until it is drawn. */
const greyOf = (page: Page, name: string) =>
  page.evaluate<number | null>(`(() => {
    const canvas = document.querySelector('canvas[aria-label="${name}"]');
    return canvas?.width > 0 ? canvas.getContext('2d').getImageData(4, 4, 1, 1).data[0] : null;
  })()`);

describeUnless(noBrowser)('images on the page', () => {
  let project: Awaited<ReturnType<typeof openPageProject>>;
  let browser: Browser;
  let page: Page;
  let problems: readonly string[];

  beforeAll(async () => {
    [project, browser] = await Promise.all([openPageProject(atEnd), startBrowser()]);
    await project.agent('server', 'start');
    page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    page.setDefaultTimeout(15_000);
    problems = watchPage(page);
    await page.goto(await project.address());
    await page.getByRole('link', { name: 'Board' }).waitFor();
  });
  afterAll(() => browser?.close());

  const to = (view: string) => page.evaluate(`location.hash = ${JSON.stringify(`#/${view}`)}`);
  const seesGrey = (name: string, grey: number) =>
    vi.waitFor(async () => expect(await greyOf(page, name)).toBe(grey), 15_000);

  test('images are chosen, pasted and dropped, and come with the new task', async () => {
    await to('new');
    await page.getByRole('textbox', { name: 'Title' }).fill('Fix the header');
    const choose = page.getByLabel('Images: choose, paste or drop them');
    await choose.setInputFiles([
      { name: 'chosen.png', mimeType: 'image/png', buffer: png(10) },
      { name: 'mistake.png', mimeType: 'image/png', buffer: png(20) },
    ]);
    await seesGrey('chosen.png', 10);
    await page.evaluate(give('paste', png(30), 'pasted.png'));
    await seesGrey('pasted.png', 30);
    await page.evaluate(give('drop', png(40), 'dropped.png'));
    await seesGrey('dropped.png', 40);
    await page.getByRole('button', { name: 'Remove mistake.png' }).click();
    await page.getByRole('button', { name: 'Create', exact: true }).last().click();
    await page.getByRole('heading', { name: 'Fix the header' }).waitFor();

    const [id = ''] = /bd-\w+/.exec(page.url()) ?? [];
    const names = (await project.show(id)).attachments.map(({ name }: { name: string }) => name);
    expect(names).toEqual(['chosen.png', 'pasted.png', 'dropped.png']);
    expect(problems).toEqual([]);
  });

  test('the page of the task draws them, also after a reload, and as large as they are', async () => {
    const place = page.url();
    await page.reload();
    await page.getByRole('tab', { name: 'Description' }).click();
    await seesGrey('chosen.png', 10);
    await seesGrey('dropped.png', 40);
    await page.getByRole('button', { name: 'pasted.png' }).click();
    const height = await page.evaluate(
      `document.querySelector('canvas[aria-label="pasted.png"]').style.maxHeight`,
    );

    expect(height).toBe('none');
    expect(page.url()).toBe(place);
    expect(problems).toEqual([]);
  });

  test('a file that is no image is refused with its name, and no task is made of it', async () => {
    await to('new');
    const text = { name: 'notes.png', mimeType: 'image/png', buffer: Buffer.from('text') };
    await page.getByLabel('Images: choose, paste or drop them').setInputFiles([text]);

    await page.getByText('notes.png: the body is no PNG, JPEG or WebP image').waitFor();

    expect(JSON.parse((await project.agent('list', '--json')).out)).toHaveLength(1);
    expect(readFileSync(join(project.root, '.beads', 'issues.jsonl'), 'utf8')).toContain('header');
  });
});
