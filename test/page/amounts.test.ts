import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { noBrowser, startBrowser, watchPage } from '../support/browser.ts';
import { describeUnless } from '../support/needs.ts';
import { endOfFile } from '../support/temporary.ts';
import { openPageProject } from './project.ts';

/** The page of a project without tasks, and of one with 2,000. */

const atEnd = endOfFile();
const count = 2_000;
const idOf = (nth: number): string => `bd-${1_000 + nth}`;

/** Chains of ten; every third chain is closed. */
const lineOf = (nth: number): string =>
  JSON.stringify({
    ...{ id: idOf(nth), title: `Make part ${nth} of the shop`, priority: 2, issue_type: 'task' },
    status: nth % 30 < 10 ? 'closed' : 'open',
    labels: ['role:engineer', `part-${nth % 7}`],
    ...{ created_at: '2026-01-15T09:30:00.000Z', updated_at: '2026-01-15T09:30:00.000Z' },
    dependencies:
      nth % 10 === 0 ? [] : [{ issue_id: idOf(nth), depends_on_id: idOf(nth - 1), type: 'blocks' }],
  });

describeUnless(noBrowser)('views of few and of many tasks', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await startBrowser();
  });
  afterAll(() => browser?.close());

  const openPage = async (project: Awaited<ReturnType<typeof openPageProject>>) => {
    await project.agent('server', 'start');
    const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    page.setDefaultTimeout(15_000);
    const problems = watchPage(page);
    await page.goto(await project.address());
    const to = (view: string) => page.evaluate(`location.hash = ${JSON.stringify(`#/${view}`)}`);
    return { page, problems, to };
  };
  const elements = (page: Page) => page.evaluate<number>('document.querySelectorAll("*").length');

  test('a view with nothing to show says why, and what to do next', {
    tags: ['slow'],
  }, async () => {
    const project = await openPageProject(atEnd);
    const { page, problems, to } = await openPage(project);
    const empty = page.locator('.empty');
    const main = page.locator('main');
    const says = async (view: string, text: string, offer: string): Promise<void> => {
      await to(view);
      await main.getByText(text).first().waitFor();
      await main.getByText(offer).first().waitFor();
    };

    await says('needs-you', 'No tasks in this project yet', 'New task');
    await says('board', 'No tasks in this project yet', 'agent create');
    await says('graph', 'No task waits for another.', 'agent dep add');
    await says('machines', 'No tasks yet', 'New task');
    await says('system', 'No agent works.', 'Run a task from the board.');
    await says('task/bd-none', 'No task bd-none in this project.', 'board');
    const id = await project.create('Think it over', '--role', 'architect');
    await says('needs-you', 'Nothing needs you.', 'Run all');
    await says(`task/${id}`, 'No attempt yet.', 'Run the task');
    await project.agent('run', id);
    await says(`task/${id}/diff`, 'This attempt changed no file.', 'Task');
    await to('board');
    await page.getByLabel('Filter by words').fill('no such words');
    await empty.getByText('No task matches.').waitFor();
    await empty.getByRole('button', { name: 'Show all 1' }).click();
    await page.getByRole('link', { name: 'Think it over' }).waitFor();
    expect(problems).toEqual([]);
  });

  test('the document holds only what is on the screen of 2,000 tasks', {
    tags: ['slow'],
  }, async () => {
    const project = await openPageProject(atEnd);
    mkdirSync(join(project.root, '.beads'));
    const lines = Array.from({ length: count }, (_, nth) => `${lineOf(nth)}\n`);
    writeFileSync(join(project.root, '.beads', 'issues.jsonl'), lines.join(''));
    const { page, problems, to } = await openPage(project);

    await to('board');
    await page.getByText('2,000 tasks').waitFor();
    const waiting = page.locator('.column', { hasText: 'Waiting for dependency' });
    await waiting.getByText('1,197').first().waitFor();
    expect(await elements(page)).toBeLessThan(2_000);
    await waiting.locator('.rows').evaluate((rows) => rows.scrollTo(0, rows.scrollHeight));
    await waiting.getByText('Make part 1999 of the shop').waitFor();
    expect(await elements(page)).toBeLessThan(2_000);
    for (const view of ['needs-you', 'graph', `machines/${idOf(11)}`, 'system']) {
      await to(view);
      await page.locator('main h1').first().waitFor();
      expect({ view, few: (await elements(page)) < 5_000 }).toEqual({ view, few: true });
    }
    await page.getByRole('searchbox').fill(idOf(1_234));
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Make part 1234 of the shop' }).waitFor();
    expect(problems).toEqual([]);
  });
});
