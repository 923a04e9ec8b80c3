import axe from 'axe-core';
import { expect, onTestFinished, test } from 'vitest';
import { noBrowser, startBrowser, watchPage } from '../support/browser.ts';
import { openGitHub } from '../support/forge/github.ts';
import { gitIn } from '../support/git.ts';
import { describeUnless } from '../support/needs.ts';
import { openPageProject } from './project.ts';

/** From complete work to a merged pull request, without git and without a terminal. */

const open = async () => {
  const [project, browser] = await Promise.all([openPageProject(onTestFinished), startBrowser()]);
  onTestFinished(() => browser.close());
  const github = await openGitHub(project.root);
  const settings = { api_url: github.apiUrl, poll_seconds: 1, checks_wait_seconds: 1 };
  for (const [key, value] of Object.entries(settings))
    await project.agent('config', 'set', `forge.${key}`, JSON.stringify(value));
  await project.agent('server', 'start');
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  page.setDefaultTimeout(15_000);
  const problems = watchPage(page);
  await page.goto(await project.address());
  await page.getByRole('link', { name: 'Board' }).waitFor();
  const to = (view: string) => page.evaluate(`location.hash = ${JSON.stringify(`#/${view}`)}`);
  return { ...project, github, page, problems, to };
};

describeUnless(noBrowser)('pull requests on the page', () => {
  test('work is published, its checks fail where a person sees it, and it is merged at the forge', {
    tags: ['slow'],
  }, async () => {
    const { root, shell, create, agent, github, page, problems, to } = await open();
    const id = await create('Add a page', '--role', 'engineer');
    await agent('run', id);
    const row = page.locator('li.need', { has: page.getByRole('link', { name: 'Add a page' }) });
    const publish = row.getByRole('button', { name: 'Publish' });

    await row.getByRole('button', { name: 'Merge' }).waitFor();
    expect(await publish.count()).toBe(0); // The project is at no forge.
    gitIn(root, 'remote', 'add', 'origin', github.remote);
    await page.reload();
    await publish.click();
    await row.getByText('Not published').waitFor();
    await row.getByText('there is no token for acme/shop: agent auth login github').waitFor();
    await shell(`printf '%s' '${github.token}' | $AGENT auth login github`);
    await row.getByRole('button', { name: 'Publish again' }).click();
    await page.getByText('Nothing needs you.').waitFor();

    await to('board');
    await page.getByLabel('In review').getByText('#1: nobody has approved it yet').waitFor();
    const head = github.bare.tip(`agent/${id}/pr`) ?? '';
    github.person.check(head, 'ci/test', 'failure');
    await page.getByLabel('Needs you').getByText('#1: 1 check failed: ci/test').waitFor();
    await to('needs-you');
    await row.getByText('Checks failed').waitFor();
    const link = row.getByRole('link', { name: 'Open #1' });
    expect(await link.getAttribute('href')).toMatch(/^http:.*\/acme\/shop\/pull\/1$/);
    expect(await link.getAttribute('rel')).toBe('noopener noreferrer');

    await to(`machines/${id}`);
    await page.getByRole('tab', { name: 'Pull request' }).click();
    const chart = page.getByRole('img', { name: /^The pullRequest machine, in / });
    expect(await chart.getAttribute('aria-label')).toContain(
      'in open.checks.red, open.review.none, open.mergeable.yes',
    );
    await to(`task/${id}/diff`);
    await page.getByText('Pull request #1 open, checks red').waitFor();
    await to(`task/${id}`);
    const facts = page.locator('.task-facts');
    await facts.getByText('red').waitFor();
    await page.evaluate(axe.source);
    const { violations } = (await page.evaluate('axe.run()')) as { violations: readonly unknown[] };
    expect(violations).toEqual([]);
    github.state.runs.length = 0;
    github.person.check(head, 'ci/test', 'success');
    github.person.review(1, 'olga', 'APPROVED');
    await facts.getByText('approved').waitFor();
    github.person.merge(1);
    await page.locator('.task-why', { hasText: 'merged at the forge, #1' }).waitFor();
    expect(problems).toEqual([]);
  });
});
