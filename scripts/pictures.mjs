// Takes the pictures of docs/guides/web-page.md: runs the demo's tasks with the real server and a
// scripted model, and photographs each view in Chromium. Usage: npm run pictures
import { execFile, execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { chromium } from 'playwright-core';

const root = fileURLToPath(new URL('..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'agent-pictures-'));
const project = join(folder, 'basket');
const config = join(folder, 'config.json');
const { OPENAI_API_KEY: _key, ...inherited } = process.env;
const env = {
  ...inherited,
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
      server: { port: 0, register_protocol_handler: false },
      sandbox: { mode: 'off' },
      tracker: { mode: 'embedded' },
      api: { backend: 'scripted', script: join(root, 'examples', 'demo-script.json') },
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

/** Three tasks that are done, one that asks, and some that wait. @returns the id of the second */
const work = async () => {
  const create = (title, role, ...more) => agent('create', title, '--role', role, ...more);
  const design = await create('Design how the basket adds up', 'architect');
  const build = await create(
    'Fix total in src/basket.js as designed',
    'engineer',
    '--deps',
    design,
  );
  const check = await create('Check the basket with its tests', 'tester', '--deps', build);
  const hold = await create('Write down what a basket may hold', 'product-manager');
  const release = await create('Release the basket', 'engineer', '--deps', `${check},${hold}`);
  await create('Tell the shops', 'product-manager', '--deps', release);
  await agent('run', design, build, check, hold, '--async');
  await agent('wait', check, '--timeout', '60');
  return build;
};

const photograph = async (id) => {
  const views = {
    'needs-you': '#/needs-you',
    board: '#/board',
    task: `#/task/${id}`,
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
    await page.goto(await agent('open', '--print'));
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
  rmSync(folder, { recursive: true, force: true });
}
