import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { noBrowser, startBrowser, watchPage } from '../support/browser.ts';
import { isLong } from '../support/long.ts';
import { describeUnless, testUnless } from '../support/needs.ts';
import { endOfFile } from '../support/temporary.ts';
import { hostileStrings } from './hostile-strings.ts';
import { openPageProject } from './project.ts';

/** Texts of tasks and agents on the page, and many tasks. */

const atEnd = endOfFile();
const says = hostileStrings.join('\n');
const turn = (tool: string, args: object) => ({ say: says, calls: [{ tool, arguments: args }] });
const hostileAgent = {
  role: 'engineer',
  title: hostileStrings[0] ?? '',
  turns: [
    turn('write', { path: `src/<img src=x onerror=window.ran=1>.js`, content: says }),
    turn('bash', { command: `printf '%s' '${says.replaceAll("'", '')}'` }),
    turn('finish', { status: 'done', summary: says, artifacts: [] }),
  ],
};

/** One line of 1 MB, then 100,000 lines, as output and as a file; a file of one line of 5 MB. */
const bomb = "head -c 1000000 /dev/zero | tr '\\0' x; echo; seq 100000";
const bombAgent = {
  role: 'engineer',
  title: 'Bomb',
  turns: [
    { say: 'x'.repeat(100_000), calls: [{ tool: 'bash', arguments: { command: bomb } }] },
    {
      say: '',
      calls: [
        {
          tool: 'bash',
          arguments: {
            command: `(${bomb}) > bomb.txt; head -c 5000000 /dev/zero | tr '\\0' y > one.txt; mkdir many; cd many; seq 20000 | split -l2 -a4 -d - f`,
          },
        },
      ],
    },
    {
      say: '',
      calls: [{ tool: 'finish', arguments: { status: 'done', summary: 'x'.repeat(9_000) } }],
    },
  ],
};

describeUnless(noBrowser)('hostile texts', () => {
  let project: Awaited<ReturnType<typeof openPageProject>>;
  let browser: Browser;

  beforeAll(async () => {
    [project, browser] = await Promise.all([
      openPageProject(atEnd, [hostileAgent, bombAgent]),
      startBrowser(),
    ]);
    await project.agent('server', 'start');
  });
  afterAll(() => browser?.close());

  const createAll = async (tasks: readonly object[]): Promise<readonly string[]> => {
    const token = (await project.agent('token')).out.trim();
    const ids: string[] = [];
    for (let from = 0; from < tasks.length; from += 20) {
      const calls = tasks
        .slice(from, from + 20)
        .map((params, id) => ({ jsonrpc: '2.0', id, method: 'create', params }));
      const response = await fetch(`${project.serverFile().url}/a2a/execute`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
        body: JSON.stringify(calls),
      });
      const answers = (await response.json()) as readonly {
        error?: unknown;
        result: { task_id: string };
      }[];
      expect(answers.flatMap(({ error }) => error ?? [])).toEqual([]);
      ids.push(...answers.map(({ result }) => result.task_id));
    }
    return ids;
  };
  const openPage = async () => {
    const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    const problems = watchPage(page);
    await page.goto(await project.address());
    await page.locator('main h1, main h2').first().waitFor();
    const to = (view: string) => page.evaluate(`location.hash = ${JSON.stringify(`#/${view}`)}`);
    return { page, problems, to };
  };

  test('40 texts in every field run nothing and break no policy', {
    tags: ['slow'],
  }, async () => {
    expect(hostileStrings).toHaveLength(40);
    const [first = ''] = await createAll(
      hostileStrings.map((text) => ({
        title: text,
        description: says,
      })),
    );
    await project.agent('engineer', first);
    const { page, problems, to } = await openPage();

    for (const view of [
      'needs-you',
      'board',
      'system',
      'new',
      `task/${first}`,
      `task/${first}/edit`,
    ]) {
      await to(view);
      await page.locator('main h1, main h2').first().waitFor();
    }
    await to(`task/${first}`);
    for (const tab of ['Log', 'Description', 'Results']) {
      await page.getByRole('tab', { name: tab }).click();
      await page.getByText('<script>window.ran=1</script>').first().waitFor();
    }
    await to(`task/${first}/diff`);
    await page.getByText('<script>window.ran=1</script>').first().waitFor();
    await page.getByRole('searchbox').fill('onerror');
    await page.getByRole('link', { name: 'onerror' }).first().waitFor();

    expect(await page.evaluate('window.ran')).toBe(undefined);
    expect(problems).toEqual([]);
    await page.close();
  });

  test('a title is shown without characters that reverse it', async () => {
    await createAll([{ description: 'x', title: '\u202eevil\u202c backwards', priority: 0 }]);
    const { page, problems, to } = await openPage();
    await to('board');
    const card = page.getByRole('link', { name: 'evil backwards' });
    await card.waitFor();

    expect(await card.textContent()).not.toMatch(/[\u202a-\u202e]/);
    expect(problems).toEqual([]);
    await page.close();
  });

  test('comments, reasons and names of files run nothing', { tags: ['slow'] }, async () => {
    const [id = ''] = await createAll([{ title: hostileStrings[0], description: 'x' }]);
    await project.agent('engineer', id);
    const file = 'src/<img src=x onerror=window.ran=1>.js';
    const comments = hostileStrings.flatMap((text) => ['--comment', `${file}:1`, text]);
    const reviewed = await project.agent('review', id, ...comments);
    const [stopped = ''] = await createAll([{ title: 'to be stopped', description: 'x' }]);
    await project.agent('cancel', stopped, '--reason', says.slice(0, 500));
    const { page, problems, to } = await openPage();

    await to(`task/${id}/diff`);
    await page.getByText('<script>window.ran=1</script>').nth(1).waitFor();
    for (const view of [`task/${id}`, `task/${stopped}`, 'graph', 'machines', 'board']) {
      await to(view);
      await page.locator('main h1, main h2').first().waitFor();
    }

    expect(reviewed.code).toBe(0);
    expect(await page.evaluate('window.ran')).toBe(undefined);
    expect(problems).toEqual([]);
    await page.close();
  });

  test('lines of 1 MB and 5 MB, 100,000 lines and 10,000 files stay small on the page', {
    tags: ['slow'],
  }, async () => {
    const [id = ''] = await createAll([{ title: 'Bomb', description: 'x' }]);
    const ran = await project.agent('engineer', id);
    const { page, problems, to } = await openPage();
    const diffs: string[] = [];
    page.on('request', (request) => {
      const asked = request.postData() ?? '';
      if (asked.includes('"method":"diff"')) diffs.push(asked);
    });
    const sizes: number[] = [];
    const wide: unknown[] = [];

    const views = [
      [`task/${id}`, '.timeline, [role=tabpanel]'],
      [`task/${id}/diff`, '.diff-line'],
      ['board', '.card'],
      ['needs-you', 'main li'],
    ] as const;
    for (const [view, content] of views) {
      await to(view);
      await page.locator(content).first().waitFor();
      await page.evaluate(`new Promise((done) => setTimeout(done, 300))`);
      sizes.push(Number(await page.evaluate('document.querySelectorAll("*").length')));
      wide.push(await page.evaluate('document.documentElement.scrollWidth > innerWidth'));
    }

    await to(`task/${id}/diff`);
    await page.getByRole('button', { name: 'Show 1,000 lines of 100,001 lines' }).click();
    await page.getByRole('button', { name: 'Show more, 1,000 lines of 99,001 lines' }).waitFor();
    await page.getByLabel('Find files by name').fill('ONE.t');
    const one = page.getByRole('region', { name: 'one.txt' });
    const more = one.getByRole('button', { name: 'Show 100,000 of the' });
    await more.and(page.getByText('4,990,000 characters left')).click();
    await more.and(page.getByText('4,890,000 characters left')).waitFor();
    await page.getByLabel('Find files by name').fill('none');
    await page.getByText('No file has “none” in its name.').waitFor();
    await page.getByLabel('Find files by name').fill('');
    const unfolded = Number(await page.evaluate('document.querySelectorAll("*").length'));
    await page.getByRole('button', { name: 'Later files' }).click();
    await page.getByText('51 to 100').waitFor();
    const file = page.getByRole('region', { name: 'many/f0049', exact: true });
    await file.getByText('100', { exact: true }).waitFor();
    await file.getByRole('button', { name: 'Comment on line 2' }).click();
    await page.getByLabel('Comment on line 2', { exact: true }).fill('Not this line.');
    await page.getByRole('button', { name: 'Add comment' }).click();
    await page.getByRole('button', { name: 'Send back with 1 comment' }).click();
    await page.waitForURL((url) => !url.hash.endsWith('/diff'));
    const { review } = await project.show(id);

    expect(ran.code).toBe(0);
    expect(diffs.filter((asked) => !asked.includes('"part"'))).toEqual([]);
    expect(review.comments).toMatchObject([
      { path: 'many/f0049', line: 2, text: 'Not this line.' },
    ]);
    expect(Math.max(...sizes)).toBeLessThan(3_000);
    expect(unfolded).toBeLessThan(10_000);
    expect(wide).toEqual([false, false, false, false]);
    expect(problems).toEqual([]);
    await page.close();
  });

  testUnless(isLong ? null : 'npm run test:long writes and shows that much')(
    'the document holds only what is on the screen of 2,000 tasks',
    async () => {
      await createAll(
        Array.from({ length: 2_000 }, (_, index) => ({ description: `Task number ${index}` })),
      );
      const { page, to } = await openPage();
      await to('board');
      await page.locator('.rows').first().waitFor();

      const size = Number(await page.evaluate('document.querySelectorAll("*").length'));
      expect(size).toBeLessThan(1_500);
      await page.evaluate("document.querySelector('.rows').scrollTo(0, 1e6)");
      await page
        .getByText(/Task number 19\d\d/)
        .first()
        .waitFor({ timeout: 10_000 });
      await page.close();
    },
  );
});
