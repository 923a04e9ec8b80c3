import { spawnSync } from 'node:child_process';
import { type Browser, chromium, type Page } from 'playwright-core';
import { pathOf } from './needs.ts';

const executablePath = pathOf('chromium') ?? pathOf('chromium-browser');

/** Why tests with a browser are skipped; null when they run. */
export const noBrowser =
  executablePath === undefined ? 'chromium is not installed (Debian: apt install chromium)' : null;

const hasFonts = (): boolean =>
  spawnSync('fc-list', ['Liberation Sans'], { encoding: 'utf8' }).stdout?.trim().length > 0;

/** Why pictures are not compared: other fonts have other widths; null when they are. */
export const noPictures =
  noBrowser ?? (hasFonts() ? null : 'the font Liberation Sans is not installed (fonts-liberation)');

export const startBrowser = (): Promise<Browser> =>
  chromium.launch({
    ...(executablePath === undefined ? {} : { executablePath }),
    args: ['--no-sandbox'],
  });

/** What a page must never do: log an error, break its policy, ask another machine. */
export const watchPage = (page: Page): readonly string[] => {
  const seen: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error') seen.push(message.text());
  });
  page.on('pageerror', (error) => seen.push(String(error)));
  page.on('request', (request) => {
    if (!/^http:\/\/127\.0\.0\.1:/.test(request.url())) seen.push(`asked ${request.url()}`);
  });
  return seen;
};
