import { readFileSync, writeFileSync } from 'node:fs';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { noBrowser, startBrowser } from '../support/browser.ts';
import { describeUnless } from '../support/needs.ts';
import { endOfFile } from '../support/temporary.ts';
import { openPageProject } from './project.ts';

/** A page without a login stays signed in when its server is started again. */

const atEnd = endOfFile();

describeUnless(noBrowser)('the page over a restart', () => {
  let project: Awaited<ReturnType<typeof openPageProject>>;
  let browser: Browser;

  beforeAll(async () => {
    [project, browser] = await Promise.all([openPageProject(atEnd), startBrowser()]);
  });
  afterAll(() => browser?.close());

  const serve = async (server: object): Promise<void> => {
    const config = JSON.parse(readFileSync(project.configFile, 'utf8'));
    writeFileSync(
      project.configFile,
      JSON.stringify({ ...config, server: { ...config.server, ...server } }),
    );
    await project.agent('server', 'start');
  };

  test('it shows what was created and deleted while no server ran', {
    tags: ['slow'],
  }, async () => {
    const gone = await project.create('Made first');
    await serve({ auth: 'none' });
    const page = await browser.newPage();
    page.setDefaultTimeout(15_000);
    await page.goto(await project.address());
    await page.evaluate(`location.hash = '#/board'`);
    const first = page.getByRole('link', { name: 'Made first' });
    await first.waitFor();
    await project.create('Made while the page looks');
    await page.getByRole('link', { name: 'Made while the page looks' }).waitFor();
    await project.agent('server', 'stop');
    await page.getByText('The server has stopped').waitFor();
    await project.create('Made while no server ran');
    await project.agent('delete', gone);

    await serve({ port: Number(new URL(page.url()).port) });

    await page.getByRole('link', { name: 'Made while no server ran' }).waitFor();
    expect(await first.count()).toBe(0);
    await page.getByText('Everything was read again.').waitFor();
  });
});
