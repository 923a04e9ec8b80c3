import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import axe from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { noBrowser, startBrowser, watchPage } from '../support/browser.ts';
import { startCutNetwork } from '../support/cut-network.ts';
import { gitIn } from '../support/git.ts';
import { describeUnless } from '../support/needs.ts';
import { endOfFile } from '../support/temporary.ts';
import { openPageProject } from './project.ts';

/** The page in a real browser, against the real server; what it did is seen with the CLI. */

interface AxeResult {
  readonly violations: readonly {
    readonly id: string;
    readonly impact: string;
    readonly nodes: readonly { readonly html: string }[];
  }[];
}
const atEnd = endOfFile();

const filesOfTheirOwn = ['Take it with agent', 'Take it with git', 'Take it later'].map(
  (title) => ({
    title,
    turns: [
      { calls: [{ tool: 'write', arguments: { path: `${title}.txt`, content: 'x' } }] },
      { calls: [{ tool: 'finish', arguments: { status: 'done', summary: 'done' } }] },
    ],
  }),
);

interface Fit {
  readonly wide: readonly string[];
  readonly moving: number;
}

/** Elements beyond the screen, but for those in a part that scrolls sideways; what is animated. */
const findUnfit = `({
  wide: [...document.querySelectorAll('body *')].filter((element) => {
    const { right, width } = element.getBoundingClientRect();
    if (width === 0 || right <= innerWidth + 1) return false;
    for (let part = element.parentElement; part?.closest('main *'); part = part.parentElement)
      if (/auto|scroll/.test(getComputedStyle(part).overflowX)) return false;
    return true;
  }).map((element) => element.outerHTML.slice(0, 120)),
  moving: document.getAnimations().length,
})`;

describeUnless(noBrowser)('the page', () => {
  let project: Awaited<ReturnType<typeof openPageProject>>;
  let browser: Browser;
  let network: Awaited<ReturnType<typeof startCutNetwork>>;
  let page: Page;
  let problems: readonly string[];

  beforeAll(async () => {
    [project, browser, network] = await Promise.all([
      openPageProject(atEnd, filesOfTheirOwn),
      startBrowser(),
      startCutNetwork(atEnd),
    ]);
    await project.agent('server', 'start');
    page = await browser.newPage({
      proxy: network.proxy,
      viewport: { width: 1280, height: 800 },
    });
    page.setDefaultTimeout(15_000);
    problems = watchPage(page);
    await page.goto(await project.address());
    await page.getByRole('link', { name: 'Board' }).waitFor();
  });
  afterAll(() => browser?.close());

  const to = (view: string) => page.evaluate(`location.hash = ${JSON.stringify(`#/${view}`)}`);
  const button = (name: string) => page.getByRole('button', { name });
  /** The row of a task in Needs you. */
  const row = (title: string) =>
    page.locator('li', { has: page.getByRole('link', { name: title }) });
  const status = async (id: string, wanted: string) =>
    vi.waitFor(async () => expect((await project.show(id)).status).toBe(wanted), 45_000);

  test('the code leaves the address at once, and no token is in it', () => {
    expect(page.url()).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/#\/needs-you$/);
  });

  test('a task is created and run, and its card is a link on the board', async () => {
    await to('new');
    await page.getByLabel('What to do').fill('Write the first file');
    await page.getByLabel('Role').selectOption('engineer');
    await button('Create and run').click();
    await page.getByText('Ready to merge').first().waitFor();

    const [task] = JSON.parse((await project.agent('list', '--json')).out);
    expect(task).toMatchObject({ title: 'Write the first file', status: 'complete', attempt: 1 });
    await to('board');
    await page.getByRole('link', { name: 'Write the first file' }).click();
    expect(page.url()).toContain(`#/task/${task.task_id}`);
  });

  test('a new task: its title has the focus, labels and verify commands are kept, wrong ids are all named', {
    tags: ['slow'],
  }, async () => {
    await to('new');
    await page.locator('input:focus').waitFor();
    await page.keyboard.type('Checked');
    await page.getByLabel('Role').selectOption('architect');
    await page.getByLabel('Labels').fill('night, ui');
    await page.getByLabel('Verify').fill('true\ntest -d src');
    await button('Create').last().click();
    await page.getByText('Verify commands are for a run').waitFor();
    await page.getByLabel('Waits for').fill('bd-none1, bd-none2');
    await button('Create and run').click();
    await page.getByText('task bd-none1 does not exist, nor bd-none2').waitFor();
    await page.getByLabel('Waits for').fill('');
    await button('Create and run').click();
    await page.getByRole('heading', { name: 'Checked' }).waitFor();
    const [id = ''] = /bd-\w+/.exec(page.url()) ?? [];
    await status(id, 'complete');

    expect(await project.show(id)).toMatchObject({
      title: 'Checked',
      description: 'Checked',
      labels: expect.arrayContaining(['role:architect', 'night', 'ui']),
    });
    expect((await project.agent('logs', id)).out).toContain('verify: test -d src');
  });

  test('the results of the search close on Escape, and when the focus goes elsewhere', async () => {
    await to('board');
    const search = page.getByRole('searchbox');
    const found = page.locator('.search-found');
    await search.fill('first');
    await found.getByRole('link', { name: 'Write the first file' }).focus();
    await page.keyboard.press('Escape');
    await found.waitFor({ state: 'detached' });
    expect(await search.inputValue()).toBe('');

    await search.fill('first');
    await found.waitFor();
    await page.getByLabel('Filter by words').focus();
    await found.waitFor({ state: 'detached' });
    await search.focus();
    await found.getByRole('link', { name: 'Write the first file' }).click();
    await page.getByRole('heading', { name: 'Write the first file' }).waitFor();
    await found.waitFor({ state: 'detached' });
  });

  test('after Enter in the search the keys act on the task that was opened', async () => {
    await to('board');
    await page.getByRole('searchbox').fill('first');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Write the first file' }).waitFor();
    await page.keyboard.press('v');

    await page.getByRole('region', { name: 'src/a.js' }).waitFor();
  });

  test('the board fits into 1280 pixels', async () => {
    await to('board');
    const hidden = () =>
      page.locator('.board').evaluate((board) => board.scrollWidth - board.clientWidth);

    await page.getByRole('link', { name: 'Write the first file' }).waitFor();
    expect(await hidden()).toBe(0);
  });

  test('Enter in a field creates the task; pressed twice, it creates one', async () => {
    await to('new');
    await page.locator('input:focus').waitFor();
    await page.keyboard.type('Created by Enter');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Created by Enter' }).waitFor();
    await to('new');
    await page.getByLabel('What to do').fill('Sent twice');
    // The second press comes when the first is answered, and the form still there.
    await page.evaluate(`
        const send = window.fetch;
        const button = document.querySelector('.create .primary');
        window.fetch = async (...given) => {
          window.fetch = send;
          const answer = await send.apply(window, given);
          for (let ms = 0; ms < 5; ms += 1) setTimeout(() => button.click(), ms);
          return answer;
        };
        'a function would be called';
      `);
    await page.keyboard.press('Control+Enter');
    await page.keyboard.press('Control+Enter');
    await page.getByRole('heading', { name: 'Sent twice' }).waitFor();

    const titles: string[] = JSON.parse((await project.agent('list', '--json')).out).map(
      ({ title }: { title: string }) => title,
    );
    expect(titles.filter((title) => /Enter|twice/.test(title))).toEqual([
      'Created by Enter',
      'Sent twice',
    ]);
  });

  test('changes are read side by side, marked as viewed, and a file is commented on', {
    tags: ['slow'],
  }, async () => {
    const id = await project.create('Change a file', '--role', 'engineer');
    await project.agent('run', id);
    await to(`task/${id}/diff`);
    const file = page.getByRole('region', { name: 'src/a.js' });
    await button('Split').click();
    expect(await file.locator('.diff-pair').count()).toBe(2);
    await button('Comment on src/a.js').click();
    await page.getByLabel('Comment on the file', { exact: true }).fill('Name it better.');
    await button('Add comment').click();
    await page.getByLabel('Viewed').check();
    await page.getByText('1 of 1 viewed').waitFor();

    await page.reload();
    await page.getByText('1 of 1 viewed').waitFor();
    expect(await file.locator('.diff-line').count()).toBe(0);
    await page.getByLabel('Viewed').uncheck();
    await file.locator('.diff-pair').first().waitFor();
    await button('Unified').click();
    await button('Comment on src/a.js').click();
    await page.getByLabel('Comment on the file', { exact: true }).fill('Name it better.');
    await button('Add comment').click();
    await button('Comment on all changes').click();
    await page.getByLabel('Comment on all changes', { exact: true }).last().fill('Add tests.');
    await button('Add comment').click();
    await button('Send back with 2 comments').click();
    await vi.waitFor(
      async () => expect(await project.show(id)).toMatchObject({ status: 'complete', attempt: 2 }),
      15_000,
    );
    const { comments } = (await project.show(id)).review;
    expect(comments).toMatchObject([
      { path: 'src/a.js', text: 'Name it better.' },
      { path: '.', text: 'Add tests.' },
    ]);
    await to(`task/${id}/diff`);
    await file.getByText('Name it better.').waitFor();
  });

  test('a comment on a line sends the work back, and the second attempt is merged', {
    tags: ['slow'],
  }, async () => {
    const id = await project.create('Write a file', '--role', 'engineer', '--run', '--async');
    const [taskId = ''] = /bd-\w+/.exec(id) ?? [];
    await status(taskId, 'complete');
    await to(`task/${taskId}/diff`);
    await button('Comment on line 1 of src/a.js').click();
    await page.getByLabel('Comment on line 1', { exact: true }).fill('Say why.');
    await button('One line more').click();
    expect(await page.getByLabel('Comment on lines 1 to 2').inputValue()).toBe('Say why.');
    expect(await button('One line more').count()).toBe(0);
    await button('Add comment').click();
    await button('Send back with 1 comment').click();

    await vi.waitFor(
      async () =>
        expect(await project.show(taskId)).toMatchObject({ status: 'complete', attempt: 2 }),
      15_000,
    );
    const { review } = await project.show(taskId);
    const lines = { line: 1, end_line: 2 };
    expect(review.comments).toMatchObject([{ path: 'src/a.js', ...lines, text: 'Say why.' }]);
    await to(`task/${taskId}`);
    await page.locator('.task-side').getByText('sent back').waitFor();
    await button('Merge').click();
    await page.getByText('Merged', { exact: true }).first().waitFor();
    expect((await project.show(taskId)).work.merged_at).toBeDefined();
  });

  test('a merge in the terminal is seen at once, by agent merge and by git', {
    tags: ['slow'],
  }, async () => {
    const quick = { timeout: 3_000 };
    await to('board');
    const toReview = page.getByRole('region', { name: 'To review' });
    const done = page.getByRole('region', { name: 'Done' });
    for (const [title, merge] of [
      ['Take it with agent', (id: string) => project.agent('merge', id, '--squash')],
      [
        'Take it with git',
        async (id: string) => gitIn(project.root, 'merge', '--quiet', '--no-edit', `agent/${id}/1`),
      ],
    ] as const) {
      const id = await project.create(title, '--role', 'architect');
      await project.agent('run', id);
      await toReview.getByRole('link', { name: title }).waitFor();

      await merge(id);
      await done.getByRole('link', { name: title }).getByText('merged').waitFor(quick);
    }
  });

  test('work is merged as one commit when the branch has moved on', {
    tags: ['slow'],
  }, async () => {
    const id = await project.create('Take it later', '--role', 'architect');
    await project.agent('run', id);
    gitIn(project.root, 'commit', '--quiet', '--allow-empty', '-m', 'meanwhile');
    await to('needs-you');
    await row('Take it later').getByRole('button', { name: 'Merge' }).click();
    await row('Take it later').waitFor({ state: 'detached' });
    await to(`task/${id}`);
    await page.getByText('Merged', { exact: true }).first().waitFor();

    expect(await page.getByRole('alert').count()).toBe(0);
    const parents = gitIn(project.root, 'log', '-2', '--format=%s').split('\n');
    expect(parents).toEqual(['Take it later', 'meanwhile']);
  });

  test('a question shows its field and is answered in place; the title counts it', async () => {
    const id = await project.create('Choose a colour', '--role', 'product-manager');
    await project.agent('run', id, '--async');
    await to('needs-you');
    const asked = row('Choose a colour');
    await asked.getByText('Red or blue?').waitFor();
    expect(await page.title()).toMatch(/^\(\d+\) /);
    await asked.getByRole('textbox').fill('blue');
    await asked.getByRole('button', { name: 'Answer' }).click();

    await status(id, 'complete');
    await asked.waitFor({ state: 'detached' });
    const decided = page.getByRole('complementary', { name: 'Decided' });
    await decided.getByText('Answered “blue”').waitFor();
    expect(await decided.getByRole('listitem').first().textContent()).toMatch(
      new RegExp(`^\\d\\d:\\d\\dAnswered “blue”${id} Choose a colour$`),
    );
    expect((await project.agent('logs', id)).out).toContain('blue');
  });

  test('calls are allowed with the key a in the focused row, and denied with the reason', {
    tags: ['slow'],
  }, async () => {
    const allowed = await project.create('Look at it', '--role', 'reviewer');
    const denied = await project.create('Look again', '--role', 'reviewer');
    await project.agent('run', allowed, denied, '--async');
    await to('needs-you');
    await row('Look at it').getByText('seq 1 40').waitFor();
    await row('Look again').getByRole('textbox').fill('not now');
    await row('Look again').getByRole('button', { name: 'Deny' }).click();
    await row('Look at it').focus();
    await page.keyboard.press('a');

    await Promise.all([status(allowed, 'complete'), status(denied, 'complete')]);
    const decided = page.getByRole('complementary', { name: 'Decided' });
    await decided.getByText('Allowed bash seq 1 40').waitFor();
    await decided.getByText(`${denied} Look again · not now`).waitFor();
    expect((await project.agent('logs', allowed)).out).toContain('40');
    expect((await project.agent('logs', denied)).out).toContain('not now');
  });

  test('a board that is opened late says which call runs, and of how many turns', async () => {
    const id = await project.create('Wait for a long time', '--role', 'tester');
    await project.agent('run', id, '--async');
    await vi.waitFor(
      async () => expect((await project.show(id)).activity).toBe('bash exec sleep 600'),
      15_000,
    );
    await to('board');
    await page.reload();

    const card = page.getByRole('link', { name: 'Wait for a long time' });
    await card.getByText('bash exec sleep 600').waitFor();
    await card.getByText('turn 1/50').waitFor();
    await project.agent('cancel', id);
    await card.getByText('1 turn', { exact: true }).waitFor();

    // An earlier moment says what it did then, and nothing of now.
    await to(`machines/${id}`);
    const slider = page.getByRole('slider');
    const at = () => slider.getAttribute('aria-valuetext');
    await slider.waitFor();
    while (!(await at())?.endsWith('acting')) await slider.press('ArrowLeft');
    await page.locator('main').getByRole('link', { name: 'Task', exact: true }).click();
    await page.locator('.task-why').getByText('bash exec sleep 600').waitFor();
    expect(await page.getByText('Last sign of life').count()).toBe(0);
    await button('Back to live').click();
  });

  test('Export gives the browser one file of the task, which is proven', async () => {
    const id = await project.create('Export me', '--role', 'engineer');
    await project.agent('run', id);
    await to(`task/${id}`);
    const [download] = await Promise.all([page.waitForEvent('download'), button('Export').click()]);
    const file = join(project.root, 'exported.html');
    await download.saveAs(file);

    expect(download.suggestedFilename()).toBe(`${id}.html`);
    expect(await project.agent('replay', '--verify', file)).toMatchObject({ code: 0 });
    expect(page.url()).toContain(`#/task/${id}`);
  });

  test('Cancel asks for confirmation, then cancels', async () => {
    const id = await project.create('Sleep', '--role', 'tester');
    await project.agent('run', id, '--async');
    await to(`task/${id}`);
    await button('Cancel').click();
    await button('Cancel it').click();

    await status(id, 'cancelled');
    await button('Retry').waitFor();
  });

  test('Run all starts every task that has a role, in the order of their dependencies', async () => {
    const first = await project.create('One', '--role', 'architect');
    const second = await project.create('Two', '--role', 'architect', '--deps', first);
    await to('board');
    await button('Run all').click();

    await status(second, 'complete');
    expect((await project.show(first)).status).toBe('complete');
  });

  test('the chart of a task is lit, and the scrubber goes back to an earlier entry', async () => {
    const id = await project.create('Light up', '--role', 'architect');
    await project.agent('run', id);
    await to(`machines/${id}`);
    const here = page.locator('.chart .state.here text');
    await here.getByText('complete', { exact: true }).waitFor();
    await page.getByRole('list').getByText('reopen').waitFor();

    await page.getByRole('slider').fill('0');
    await vi.waitFor(() => expect(page.url()).toMatch(/\?at=\d+$/));
    expect(await here.textContent()).not.toBe('complete');
    await page.getByRole('tab', { name: 'Agent' }).click();
    await page.getByRole('img', { name: 'The agent machine, in no state yet' }).waitFor();
    // Of that moment, not of now.
    const facts = page.getByLabel('About this moment');
    expect(await facts.getByText('Events allowed now').count()).toBe(0);
    await page.locator('main').getByRole('link', { name: 'Task', exact: true }).click();
    await page.locator('.task-title').getByText('Needs a slot').waitFor();
    expect(await page.getByRole('log').getByText('complete: done').count()).toBe(0);
    expect(await button('Reopen').count()).toBe(0);
    await button('Back to live').click();
    await button('Reopen').waitFor();
    await page.getByRole('log').getByText('complete: done').waitFor();
    await to(`machines/${id}`);
    await page.getByRole('tab', { name: 'Agent' }).click();
    await page.getByRole('slider').fill('0');
    await button('Back to live').click();
    await here.getByText('done', { exact: true }).waitFor();
    await page.getByRole('tab', { name: 'Task complete' }).click();
    await facts.getByText('started.closing → complete').waitFor();
    await facts.getByText('close done').waitFor();
    await facts.getByText('accepted').waitFor();
    await facts.getByRole('listitem').getByText('reopen').waitFor();
    const refused = facts.locator('.refused');
    await refused.getByText('heldByNobodyElse').waitFor();
    await refused.getByText('holder: "its closed state"').waitFor();
    const slot = facts.getByRole('row').filter({ hasText: 'slotIsFree' });
    await slot.getByText('cap: 3').waitFor();
    await page.getByRole('tab', { name: 'Supervisor open' }).click();
    await here.getByText('open', { exact: true }).waitFor();
    await page.getByRole('tab', { name: 'Task' }).click();
  });

  test('the graph draws what waits for what, and names what the longest chain waits for', async () => {
    const first = await project.create('Dig a hole');
    const second = await project.create('Fill it', '--deps', first);
    await project.create('Look at it all', '--deps', second);
    await to('graph');

    await page.getByText('Critical path: 3 open tasks').waitFor();
    await page.locator('.critical-path').getByRole('link', { name: 'Dig a hole' }).waitFor();
    expect(await page.locator('.edge.critical').count()).toBe(2);
    await page.locator('.node').getByText('Look at it all').click();
    expect(page.url()).toContain('#/task/');
  });

  test('Machines stays at its task while others change', async () => {
    await project.create('Stay here');
    await to('machines');
    const picked = page.locator('.picker select');
    const first = await picked.inputValue();
    const other = await project.create('Change later', '--role', 'architect');
    await project.agent('run', other);
    await picked.focus();
    await vi.waitFor(async () => expect(await picked.textContent()).toContain('Change later'));

    expect(await picked.inputValue()).toBe(first);
  });

  test('hints are shown on a focus by key, a long press, and a press of what cannot be pressed', async () => {
    const id = await project.create('Hint');
    await project.agent('reviewer', id, '--async');
    const context = await browser.newContext({
      ...{ hasTouch: true, viewport: { width: 375, height: 700 } },
    });
    const phone = await context.newPage();
    await phone.goto(await project.address());
    const hint = phone.getByRole('tooltip');
    const allow = phone.getByRole('button', { name: 'Allow' }).first();
    await allow.waitFor();
    const { x = 0, y = 0 } = (await allow.boundingBox()) ?? {};
    const touch = await context.newCDPSession(phone);
    const dispatch = (type: string, touchPoints: readonly object[]) =>
      touch.send('Input.dispatchTouchEvent', { type, touchPoints } as never);
    await dispatch('touchStart', [{ x: x + 20, y: y + 20 }]);
    await hint.getByText('These calls run, once').waitFor();
    await dispatch('touchEnd', []);
    await phone.getByRole('link', { name: 'Hint' }).tap();
    expect(await hint.count()).toBe(0);
    expect((await project.show(id)).awaiting).toBeDefined();
    await allow.waitFor();
    await phone.keyboard.press('Tab');
    for (let tab = 0; tab < 40 && (await hint.count()) === 0; tab += 1)
      await phone.keyboard.press('Tab');
    await hint.waitFor();
    // A focus may scroll to its element just after.
    await phone.evaluate("document.dispatchEvent(new Event('scroll'))");
    expect(await hint.count()).toBe(1);
    const address = phone.url();
    await phone.keyboard.press('Escape');
    await hint.waitFor({ state: 'detached' });
    expect(phone.url()).toBe(address);
    await project.agent('cancel', id);
    await phone.evaluate(`location.hash = '#/task/${await project.create('No role')}'`);
    await phone.getByRole('button', { name: 'Run' }).tap({ force: true });
    await hint.getByText('Choose the role that works on it').waitFor();
    await context.close();
  });

  /** The page may be back by itself just before. */
  const tryNow = () =>
    Promise.race([button('Try now').click(), page.getByText('Back.').first().waitFor()]);

  test('a stream that was cut misses nothing, and the page says so', async () => {
    await to('board');
    network.cut();
    await page.getByText('Reconnecting.').waitFor();
    const id = await project.create('While it was cut', '--role', 'architect');
    await project.agent('run', id);
    network.mend();
    await tryNow();
    await page.getByText('nothing is missing').waitFor();

    await page.getByRole('link', { name: 'While it was cut' }).getByText('complete').waitFor();
  });

  test('entries that were removed while it was cut are not said to be there', async () => {
    await to('board');
    const gap = {
      ...{ type: 'gap', task_id: null, attempt: 0, timestamp: '2026-01-01T00:00:00.000Z' },
      data: { resume_from: 1_000_000, message: 'removed' },
    };
    const answer = {
      contentType: 'text/event-stream',
      body: `event: gap\ndata: ${JSON.stringify(gap)}\n\n`,
    };
    network.cut();
    await page.getByText('Reconnecting.').waitFor();
    // From here on, so that no try before takes the answer.
    await page.route('**/stream', (route) => route.fulfill(answer), { times: 1 });
    network.mend();
    await tryNow();

    await page.getByText('Everything was read again').waitFor();
  });

  test('a line says that the tracker is away, and why', async () => {
    const other = await browser.newPage();
    await other.route('**/health', async (route) => {
      const health = await (await route.fetch()).json();
      health.checks.tracker = { status: 'failing', detail: '`bd` does not answer' };
      await route.fulfill({ json: health });
    });
    await other.goto(await project.address());

    await other.getByText('The tracker is away').getByText('`bd` does not answer').waitFor();
    await other.close();
  });

  test('a server that cannot say how it is does not break the page', async () => {
    const other = await browser.newPage();
    await other.route('**/health', (route) =>
      route.fulfill({ status: 500, json: { error: { code: 'internal', message: 'broken' } } }),
    );
    const asked = other.waitForResponse('**/health');
    await other.goto(await project.address());
    await asked;
    await other.evaluate("location.hash = '#/board'");

    await other.getByRole('heading', { name: 'Board' }).waitFor();
    await other.close();
  });

  test.each([
    ['light', 1_280],
    ['dark', 1_280],
    ['light', 375],
    ['dark', 375],
  ] as const)(
    'axe finds nothing serious on any view, %s, %i wide',
    {
      tags: ['slow'],
    },
    async (colorScheme, width) => {
      const [task] = JSON.parse((await project.agent('list', '--json')).out);
      const views = ['needs-you', 'board', 'graph', 'machines', 'system', 'new'];
      const ofTask = ['', '/diff', '/edit'].map((part) => `task/${task.task_id}${part}`);
      const found: string[] = [];
      await page.setViewportSize({ width, height: 800 });
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      // The page's policy does not bind the debugger.
      await page.evaluate(axe.source);
      for (const view of [...views, ...ofTask]) {
        await to(view);
        await page.locator('main h1, main h2').first().waitFor();
        const { violations } = await page.evaluate<AxeResult>('axe.run()');
        found.push(
          ...violations
            .filter(({ impact }) => ['serious', 'critical'].includes(impact))
            .map(({ id, nodes }) => `${view} ${id} ${nodes[0]?.html}`),
        );
      }
      await page.setViewportSize({ width: 1280, height: 800 });
      await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'no-preference' });

      expect(found).toEqual([]);
    },
  );

  test('no view is wider than a phone, and nothing moves for who wants no motion', async () => {
    const [task] = JSON.parse((await project.agent('list', '--json')).out);
    const views = ['needs-you', 'board', 'graph', 'machines', 'system', 'new'];
    const first = await project.create('Decide how prices and taxes are stored and rounded');
    const second = await project.create('Build it', '--deps', first);
    const ofTask = [
      ...['', '/diff', '/edit'].map((part) => `task/${task.task_id}${part}`),
      `task/${second}/edit`,
    ];
    await page.setViewportSize({ width: 375, height: 700 });
    await page.emulateMedia({ reducedMotion: 'reduce' });
    // What an earlier test set in motion may end.
    await page.evaluate(
      'Promise.allSettled(document.getAnimations().map(({ finished }) => finished))',
    );
    const found: object[] = [];
    for (const view of [...views, ...ofTask]) {
      await to(view);
      await page.locator('main h1, main h2').first().waitFor();
      if (view.includes(second)) await page.getByRole('link', { name: first }).waitFor();
      await page.evaluate(
        'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))',
      );
      const { wide, moving } = await page.evaluate<Fit>(findUnfit);
      if (wide.length > 0 || moving > 0) found.push({ view, wide: wide.slice(0, 3), moving });
    }
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.emulateMedia({ reducedMotion: 'no-preference' });

    expect(found).toEqual([]);
  });

  test('where the top bar has no room to sign out, System has it', async () => {
    await page.setViewportSize({ width: 375, height: 700 });
    await to('board');
    await page.getByRole('heading', { name: 'Board' }).waitFor();
    expect(await page.locator('.top .mark').isVisible()).toBe(true);
    expect(await button('Sign out').count()).toBe(0);
    await to('system');
    await button('Sign out').waitFor();
    await page.setViewportSize({ width: 1280, height: 800 });
    await vi.waitFor(async () => expect(await button('Sign out').count()).toBe(1));
  });

  test('after signing out the page is closed, and a used code says so', {
    tags: ['slow'],
  }, async () => {
    const address = await project.address();
    const other = await browser.newPage();
    await other.goto(address);
    const signOut = other.getByRole('button', { name: 'Sign out' });
    await signOut.waitFor();
    // What was asked before is answered after it, and refused.
    let isOut = false;
    const late = other.waitForResponse((response) => isOut && response.status() === 401);
    await other.route('**/a2a/execute', async (route) => {
      await vi.waitUntil(() => isOut);
      await route.continue();
    });
    await other.evaluate(`location.hash = '#/system'`);
    await signOut.click();
    await other.getByText('You are signed out.').waitFor();
    isOut = true;
    await late;
    expect(await other.getByText('You are signed out.').isVisible()).toBe(true);
    await other.goto('about:blank');
    await other.goto(address);

    await other.getByText('That code was used already.').waitFor();
    await other.close();
  });

  test('a page that stayed open says that the server has stopped, signs in to the next one, and shows what was created without one', {
    tags: ['slow'],
  }, async () => {
    await to('board');
    await project.create('Made while a server ran');
    await page.getByRole('link', { name: 'Made while a server ran' }).waitFor();
    await project.agent('server', 'stop');
    await page.getByText('The server has stopped').waitFor();
    const config = JSON.parse(readFileSync(project.configFile, 'utf8'));
    const port = Number(new URL(page.url()).port);
    writeFileSync(project.configFile, JSON.stringify({ ...config, server: { port } }));
    await project.create('Made while no server ran');
    await project.agent('server', 'start');
    await page.getByText('the server was started again').getByText('Run agent open').waitFor();

    await page.goto(await project.address());
    await to('board');

    await page.getByRole('link', { name: 'Made while no server ran' }).waitFor();
  });

  test('nothing was refused by the policy, logged as an error, or asked of another machine', () => {
    // The cut, and the code that was used.
    const expected = /net::ERR_|401/;
    expect(problems.filter((problem) => !expected.test(problem))).toEqual([]);
  });
});
