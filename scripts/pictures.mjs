// Takes the pictures of docs/guides/web-page.md: runs the tasks of a small shop with the real server
// and a model on this machine that plays pictures-script.json, and photographs each view in Chromium.
// Usage: npm run pictures
import { execFile, execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { chromium } from 'playwright-core';
import { parseScript } from '../build/actors/model/script.js';
import { createScriptedModel } from '../build/actors/model/scripted.js';
import { play } from '../test/model-server/play.mjs';
import { createModelServer } from '../test/model-server/server.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'agent-pictures-'));
const project = join(folder, 'corner-shop');
const config = join(folder, 'config.json');
const script = parseScript(
  JSON.parse(readFileSync(join(root, 'scripts', 'pictures-script.json'), 'utf8')),
);
const provider = await createModelServer({ answer: play(createScriptedModel(script)) });
const env = {
  ...process.env,
  OPENAI_API_KEY: 'no-key-a-script-answers',
  AGENT_STATE_DIR: join(folder, 'state'),
  AGENT_SERVER_CONFIG: config,
};
const settleMs = 1_500;

const agent = async (...args) => {
  const cli = join(root, 'dist', 'cli', 'agent.js');
  const { stdout } = await promisify(execFile)(process.execPath, [cli, ...args], {
    cwd: project,
    env,
    timeout: 60_000,
  });
  return stdout.trim();
};

const setUp = () => {
  cpSync(join(root, 'examples', 'demo'), project, { recursive: true });
  writeFileSync(
    config,
    JSON.stringify({
      server: { port: 0, register_protocol_handler: false, max_concurrent_agents: 2 },
      sandbox: { mode: 'off' },
      tracker: { mode: 'embedded' },
      api: {
        ...{ backend: 'builtin', base_url: provider.baseURL, provider_model: 'gpt-5.1' },
        prices: { 'gpt-5.1': { input_per_million: 1.25, output_per_million: 10 } },
      },
      roles: { reviewer: { require_approval: ['bash'] } },
    }),
  );
  const git = (...args) =>
    execFileSync('git', ['-c', 'user.name=you', '-c', 'user.email=you@localhost', ...args], {
      cwd: project,
    });
  git('init', '--quiet', '--initial-branch=main');
  git('add', '--all');
  git('commit', '--quiet', '--message', 'a basket with a failing test');
};

/**
 * Tasks in every column of the board. @returns the ids of the one to review and of one at work
 */
const work = async () => {
  const create = (title, role, ...deps) =>
    agent('create', title, '--role', role, ...(deps.length > 0 ? ['--deps', deps.join()] : []));
  const asks = async (id) => JSON.parse(await agent('show', id, '--json')).awaiting !== undefined;
  const design = await create('Decide how prices and VAT are stored', 'architect');
  const build = await create('Basket totals with quantity and VAT', 'engineer', design);
  const search = await create('Search box over the product list', 'engineer');
  const hold = await create('Write down what a basket may hold', 'product-manager');
  const prices = await create('Review the price model', 'reviewer', design);
  const tests = await create('Tests for the product list', 'tester', design);
  const form = await create('Checkout form with address check', 'engineer', design);
  const phone = await create('Check the shop on a phone', 'tester');
  const mail = await create('Order confirmation by e-mail', 'engineer', build, prices);
  await create('Take payments at checkout', 'engineer', mail, hold, form);
  await agent('run', design);
  await agent('merge', design);
  await agent('run', build);
  await agent('run', search, '--verify', 'npm test --silent').catch(() => null);
  await agent('run', hold, prices, '--async');
  while (!((await asks(hold)) && (await asks(prices)))) await pause(200);
  await agent('run', tests, form, '--async');
  await pause(4_000);
  await agent('run', phone, '--async');
  return { build, tests };
};

const photograph = async ({ build: id, tests }) => {
  const views = {
    'needs-you': '#/needs-you',
    board: '#/board',
    task: `#/task/${id}`,
    live: `#/task/${tests}`,
    diff: `#/task/${id}/diff`,
    graph: '#/graph',
    machines: `#/machines/${id}`,
    system: '#/system',
  };
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox'],
  });
  try {
    const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    await page.goto(await agent('open', '--direct', '--print'));
    for (const [name, address] of Object.entries(views)) {
      await page.evaluate((hash) => {
        location.hash = hash;
      }, address);
      await page.waitForTimeout(settleMs);
      await page.screenshot({ path: join(root, 'docs', 'images', `page-${name}.png`) });
    }
    const file = join(folder, 'task.html');
    await agent('export', id, '-o', file);
    await page.goto(pathToFileURL(file).href);
    await page.locator('.scrubber').waitFor();
    await page.screenshot({ path: join(root, 'docs', 'images', 'page-recording.png') });
  } finally {
    await browser.close();
  }
};

setUp();
try {
  await photograph(await work());
} finally {
  await agent('server', 'stop').catch(() => null);
  await provider.close();
  rmSync(folder, { recursive: true, force: true });
}
