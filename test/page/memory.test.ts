import type { Browser, CDPSession } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { noBrowser, startBrowser } from '../support/browser.ts';
import { endOfFile } from '../support/temporary.ts';
import { openPageProject } from './project.ts';

const atEnd = endOfFile();

/** How many lists of entries of a task the page holds, after all that can be collected is. */
const listsOfEntries = async (session: CDPSession): Promise<number> => {
  const { result } = await session.send('Runtime.evaluate', { expression: 'Array.prototype' });
  const { objects } = await session.send('Runtime.queryObjects', {
    prototypeObjectId: result.objectId ?? '',
  });
  const counted = await session.send('Runtime.callFunctionOn', {
    objectId: objects.objectId ?? '',
    functionDeclaration: 'function () { return this.filter((list) => list[0]?.seq > 0).length; }',
    returnByValue: true,
  });
  return counted.result.value;
};

describe.skipIf(noBrowser !== null)(
  `the memory of the page${noBrowser === null ? '' : ` (${noBrowser})`}`,
  () => {
    let browser: Browser;
    beforeAll(async () => {
      browser = await startBrowser();
    });
    afterAll(() => browser?.close());

    test('a page that follows a task keeps its entries, and no list that it drew before', {
      tags: ['slow'],
    }, async () => {
      const project = await openPageProject(atEnd);
      await project.agent('server', 'start');
      const id = await project.create('Follow me');
      const page = await browser.newPage();
      await page.goto(await project.address(id));
      const session = await page.context().newCDPSession(page);
      const entries = page.getByRole('log').locator('.log-line');

      for (let nth = 1; nth <= 30; nth += 1) {
        await project.agent('edit', id, '--priority', `${nth % 4}`);
        await entries.nth(nth - 1).waitFor();
      }

      expect(await listsOfEntries(session)).toBeLessThan(10);
    });
  },
);
