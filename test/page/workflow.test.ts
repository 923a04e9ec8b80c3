import axe from 'axe-core';
import { expect, onTestFinished } from 'vitest';
import { noBrowser, startBrowser, watchPage } from '../support/browser.ts';
import { testUnless } from '../support/needs.ts';
import { openPageProject } from './project.ts';

const openWithWorkflow = async () => {
  const project = await openPageProject(onTestFinished);
  const browser = await startBrowser();
  onTestFinished(() => browser.close());
  const started = await project.agent('workflow', 'start', 'feature', 'Export', '--json');
  const { workflow_id } = JSON.parse(started.out);
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  page.setDefaultTimeout(15_000);
  const problems = watchPage(page);
  await page.goto(await project.address());
  return { project, page, problems, workflow_id };
};

testUnless(noBrowser)(
  'a workflow is shown as its phases, with what it waits for, and follows what happens',
  { tags: ['slow'] },
  async () => {
    const { project, page, problems, workflow_id } = await openWithWorkflow();
    await page.getByRole('link', { name: 'System' }).click();

    await page.getByRole('link', { name: 'Export', exact: true }).click();
    await page.getByRole('heading', { name: 'Export', exact: true }).waitFor();
    const waits = page.getByRole('listitem').filter({ hasText: 'a person: ' });
    const first = (await waits.first().textContent()) ?? '';
    await project.agent('close', /bd-\w+/.exec(first)?.[0] ?? '', '--reason', 'no, all want it');
    await page.getByText('strategist: no (person: no, all want it)').waitFor();
    await page.getByText('Is the step archaeologist needed').first().waitFor();
    const link = await waits.getByRole('link').first().getAttribute('href');

    expect(first).toContain(
      '(Is the step strategist needed for Export?); answer with: agent close',
    );
    expect(link).toMatch(/^#\/task\/bd-\w+$/);
    expect(await page.getByRole('heading', { level: 2 }).allTextContents()).toEqual([
      'Waits for',
      expect.stringContaining(
        '0 product definition and architecture design, part 1: strategy passed over',
      ),
      expect.stringContaining(
        '0 product definition and architecture design, part 2: definition and design at work',
      ),
      expect.stringContaining('1 discovery and scoping to come'),
      expect.stringContaining('2 design and planning to come'),
      expect.stringContaining('3 implementation to come'),
      expect.stringContaining('4 validation and documentation to come'),
      expect.stringContaining('5 rollout to come'),
    ]);
    await page.evaluate(axe.source);
    const { violations } = (await page.evaluate('axe.run()')) as { violations: readonly unknown[] };
    expect(violations).toEqual([]);
    await project.agent('workflow', 'cancel', workflow_id, '--reason', 'no money');
    await page.getByRole('heading', { name: 'Why it is cancelled' }).waitFor();
    await page.getByText('no money', { exact: true }).waitFor();
    await page.goto(`${page.url().split('#')[0]}#/workflow/wf-none`);
    await page.getByText('names no workflow of this project').waitFor();
    expect(workflow_id).toMatch(/^wf-/);
    expect(problems).toEqual([]);
  },
);

testUnless(noBrowser)(
  'a step of a person needs you: counted in the title, answered and closed in its row',
  { tags: ['slow'] },
  async () => {
    const { page, problems, workflow_id } = await openWithWorkflow();
    await page.getByText('Is the step strategist needed for Export?').waitFor();
    const title = await page.title();
    await page.getByText('only if it is unclear whether the feature is worth').waitFor();
    await page.getByPlaceholder('Reason, kept with the task').fill('all want it');
    await page.getByRole('button', { name: 'No', exact: true }).click();
    await page.getByText('Is the step archaeologist needed for Export?').waitFor();
    await page.getByRole('link', { name: 'Workflow' }).first().click();
    await page.getByText('strategist: no (person: no, all want it)').waitFor();

    expect(title).toMatch(/^\(1\) /);
    expect(page.url()).toContain(`#/workflow/${workflow_id}`);
    expect(problems).toEqual([]);
  },
);
