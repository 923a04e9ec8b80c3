import { readFileSync, writeFileSync } from 'node:fs';
import { expect, onTestFinished } from 'vitest';
import { noBrowser, startBrowser, watchPage } from '../support/browser.ts';
import { testUnless } from '../support/needs.ts';
import { openPageProject } from './project.ts';

testUnless(noBrowser)(
  'a task at a budget is a row of Needs you, which says what lets it go on',
  async () => {
    const project = await openPageProject(onTestFinished);
    const config = JSON.parse(readFileSync(project.configFile, 'utf8'));
    const price = { input_per_million: 10_000, output_per_million: 10_000 };
    config.api.prices = { [config.api.provider_model]: price };
    writeFileSync(project.configFile, JSON.stringify({ ...config, budget: { run_usd: 0.01 } }));
    const id = await project.create('Costs too much', '--role', 'engineer');
    const run = await project.agent('run', id);
    const browser = await startBrowser();
    onTestFinished(() => browser.close());
    const page = await browser.newPage();
    page.setDefaultTimeout(15_000);
    const problems = watchPage(page);

    await page.goto(await project.address());
    const row = page.locator('li', { has: page.getByRole('link', { name: 'Costs too much' }) });
    await row.getByText('Over budget').waitFor();

    expect(run.code).toBe(6);
    const says = await row.textContent();
    expect(says).toContain('budget.run_usd');
    expect(says).toContain(`goes on with: agent run ${id} --max-cost <usd>`);
    expect(await page.title()).toMatch(/^\(1\) /);
    expect(problems).toEqual([]);
  },
);
