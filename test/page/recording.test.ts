import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import axe from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { RecordedEntry, Recording } from '../../src/actors/journal/replay/recording.ts';
import {
  readRecordingPage,
  recordingIn,
  renderRecording,
} from '../../src/cli/recording/recording-document.ts';
import { noBrowser, startBrowser } from '../support/browser.ts';
import { describeUnless } from '../support/needs.ts';
import { endOfFile } from '../support/temporary.ts';
import { hostileStrings } from './hostile-strings.ts';
import { openPageProject } from './project.ts';

/** An exported task in a real browser, without a server and without a network. */

const atEnd = endOfFile();
const says = hostileStrings.join('\n');
const turn = (tool: string, args: object) => ({ say: says, calls: [{ tool, arguments: args }] });
const hostileAgent = {
  role: 'architect',
  turns: [
    turn('write', { path: 'src/<img src=x onerror=window.ran=1>.js', content: says }),
    turn('finish', { status: 'done', summary: says, artifacts: [] }),
  ],
};

interface AxeResult {
  readonly violations: readonly {
    readonly id: string;
    readonly impact: string;
    readonly nodes: readonly { readonly html: string }[];
  }[];
}

/** The same journal again and again, as one of 5,000 entries. */
const repeated = ({ items, ...recording }: Recording, count: number): Recording => {
  const entries = items as readonly RecordedEntry[];
  const times = Math.ceil(count / entries.length);
  const first = entries[0]?.seq ?? 0;
  const length = (entries.at(-1)?.seq ?? 0) - first + 1;
  return {
    ...recording,
    items: Array.from({ length: times }, (_, time) =>
      entries.map((entry) => ({
        ...entry,
        ...{ seq: entry.seq + time * length, at: entry.at + time * 10_000 },
        base: entry.base === null ? null : entry.base + time * length,
      })),
    ).flat(),
  };
};

describeUnless(noBrowser)('an exported task', () => {
  let project: Awaited<ReturnType<typeof openPageProject>>;
  let browser: Browser;
  let id: string;
  let file: string;

  const exported = async (task: string, ...args: string[]): Promise<string> => {
    const said = await project.agent('export', task, ...args);
    expect(said).toMatchObject({ code: 0 });
    return join(project.root, `${task}.html`);
  };
  beforeAll(async () => {
    [project, browser] = await Promise.all([
      openPageProject(atEnd, [hostileAgent]),
      startBrowser(),
    ]);
    id = await project.create('Write a file');
    await project.agent('engineer', id);
    file = await exported(id);
  });
  afterAll(() => browser?.close());

  /** `seen`: what the page must not do. */
  const open = async (path: string, size = { width: 1280, height: 800 }) => {
    const context = await browser.newContext({ viewport: size, offline: true });
    const page = await context.newPage();
    page.setDefaultTimeout(15_000);
    const seen: string[] = [];
    const address = pathToFileURL(path).href;
    page.on('console', (message) => void seen.push(message.text()));
    page.on('pageerror', (error) => void seen.push(String(error)));
    page.on('request', (request) => {
      if (request.url() !== address) seen.push(`asked ${request.url()}`);
    });
    await page.goto(address);
    await page.locator('h1').first().waitFor();
    return { page, seen };
  };
  const go = (page: Page, view: string) => page.getByRole('link', { name: view }).first().click();

  test('shows the task, its log, its charts and its changes, and asks nobody for anything', {
    tags: ['slow'],
  }, async () => {
    const { page, seen } = await open(file);

    expect(await page.title()).toBe(`${id}: Write a file`);
    await page.getByRole('heading', { name: 'Write a file' }).waitFor();
    await page.getByRole('log').getByText('complete: wrote src/a.js').waitFor();
    await page.getByText(/^Recording, exported$/).waitFor();
    await go(page, 'Machines');
    await page.locator('.chart .state.here text').getByText('complete', { exact: true }).waitFor();
    for (const machine of ['Agent', 'Supervisor', 'Task']) {
      await page.getByRole('tab', { name: machine }).click();
      await page.getByRole('img', { name: `The ${machine.toLowerCase()} machine` }).waitFor();
    }
    await go(page, 'Changes');
    await page.locator('.diff-line.added').getByText('export const a = 1;').waitFor();

    expect(seen).toEqual([]);
    await page.context().close();
  });

  test('the scrubber shows task, log and chart as they were', { tags: ['slow'] }, async () => {
    const { page, seen } = await open(file);
    const log = page.getByRole('log');
    await log.getByText('complete: wrote src/a.js').waitFor();

    await page.getByRole('slider').fill('0');
    await page.locator('.task-title').getByText('Needs a slot').waitFor();
    expect(await log.getByText('wrote src/a.js').count()).toBe(0);
    for (let n = 0; n < 40; n += 1) await page.getByRole('button', { name: 'Entry after' }).click();
    await log.getByText('complete: wrote src/a.js').waitFor();
    await page.getByRole('slider').fill('9');
    await vi.waitFor(() => expect(page.url()).toMatch(/\?at=\d+$/));
    const before = page.url();
    await page.keyboard.press('Escape');
    await page.keyboard.press('ArrowLeft');
    await vi.waitFor(() => expect(page.url()).not.toBe(before));
    await go(page, 'Machines');
    await page.getByRole('slider').fill('9');
    const here = page.locator('.chart .state.here text');
    expect(await here.textContent()).not.toBe('complete');
    await page.getByRole('link', { name: 'Task', exact: true }).last().click();
    expect(page.url()).toMatch(/\/task\/.*\?at=\d+$/);
    await page.getByRole('button', { name: 'Latest' }).click();
    await log.getByText('complete: wrote src/a.js').waitFor();

    expect(seen).toEqual([]);
    await page.context().close();
  });

  test('has no button that acts, and nothing serious for axe, in light and dark', {
    tags: ['slow'],
  }, async () => {
    const { page, seen } = await open(file);
    const found: string[] = [];
    const names = new Set<string>();
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      for (const view of ['Task', 'Machines', 'Changes']) {
        await go(page, view);
        // At once: the view may still be drawn.
        const seenNow = await page
          .getByRole('button')
          .evaluateAll((all) =>
            all.map((each) => each.getAttribute('aria-label') ?? each.textContent ?? ''),
          );
        for (const name of seenNow) names.add(name);
        // The page's policy does not bind the debugger.
        await page.evaluate(axe.source);
        const { violations } = await page.evaluate<AxeResult>('axe.run()');
        found.push(
          ...violations
            .filter(({ impact }) => ['serious', 'critical'].includes(impact))
            .map(({ id, nodes }) => `${colorScheme} ${view} ${id} ${nodes[0]?.html}`),
        );
      }
    }

    expect(found).toEqual([]);
    const looks =
      /^(Entry (before|after)|Play|Latest|Unified|Split|Show .*|\d\d:\d\d:\d\d.*|src\/a\.js.*)$/s;
    expect([...names].filter((name) => !looks.test(name))).toEqual([]);
    expect(await page.locator('input:not([type=range]), textarea').count()).toBe(0);
    expect(seen).toEqual([]);
    await page.context().close();
  });

  test('fits into 375 pixels', async () => {
    const { page } = await open(file, { width: 375, height: 740 });
    for (const view of ['Task', 'Machines', 'Changes']) {
      await go(page, view);
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(375);
    }
    await page.context().close();
  });

  test('40 hostile texts in title, log and changes run nothing and break no policy', {
    tags: ['slow'],
  }, async () => {
    const task = await project.create(hostileStrings.slice(0, 8).join(' '));
    await project.agent('edit', task, '--description', says);
    await project.agent('architect', task);
    const { page, seen } = await open(await exported(task));

    for (const tab of ['Log', 'Description', 'Results']) {
      await page.getByRole('tab', { name: tab }).click();
      await page.getByText('<script>window.ran=1</script>').first().waitFor();
    }
    await go(page, 'Machines');
    await go(page, 'Changes');
    await page.getByText('<script>window.ran=1</script>').first().waitFor();

    expect(await page.evaluate('window.ran')).toBe(undefined);
    expect(seen).toEqual([]);
    expect(await project.agent('replay', '--verify', `${task}.html`)).toMatchObject({ code: 0 });
    await page.context().close();
  });

  test('the document holds only the entries of 5,000 that are looked at, at every place', {
    tags: ['slow'],
  }, async () => {
    const recording = JSON.parse(recordingIn(readFileSync(file, 'utf8')) ?? '') as Recording;
    const long = join(project.root, 'long.html');
    writeFileSync(long, renderRecording(repeated(recording, 5_000), readRecordingPage()));
    const { page, seen } = await open(long);
    const slider = page.getByRole('slider');
    const last = Number(await slider.getAttribute('max'));

    expect(last).toBeGreaterThan(1_000);
    for (let n = 0; n <= 20; n += 1) {
      await slider.fill(`${Math.floor((last * n) / 20)}`);
      const size = Number(await page.evaluate('document.querySelectorAll("*").length'));
      expect(size).toBeLessThan(5_000);
    }
    await go(page, 'Machines');
    for (let n = 0; n <= 20; n += 1) await slider.fill(`${Math.floor((last * n) / 20)}`);
    await page.locator('.chart .state.here').waitFor();

    expect(seen).toEqual([]);
    await page.context().close();
  });
});
