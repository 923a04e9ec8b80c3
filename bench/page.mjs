// The web page in Chromium beside a frame: what our script costs while three agents write to a
// project with 2,000 tasks, when the page is first painted, and whether its memory stays flat.
// SECONDS=600 is the long form.
import { setTimeout as pause } from 'node:timers/promises';
import { chromium } from 'playwright-core';
import { median, openServer, openSystem, percentile, report } from './lib.mjs';

const tasks = Number(process.env.TASKS ?? 2_000);
const seconds = Number(process.env.SECONDS ?? 60);
const secondsPerView = Number(process.env.SECONDS_PER_VIEW ?? 10);
const loads = Number(process.env.RUNS ?? 9);
/** In a second, of each agent. */
const eventsOfEach = 200;
const agents = 3;
/** Of one task, written before the page opens: as many as the page keeps. */
const entriesBefore = 10 * tasks;
const tickMs = 25;
const frameUs = 1_000_000 / 60;
const token = 'bench';
const frameGoalMs = 8;
const paintGoalMs = 300;
const heapGoal = 1.1;

/** Open tasks in chains of ten, every third task closed, and three at work on a slow model call. */
const fill = async ({ service }) => {
  const ids = [];
  for (let nth = 0; nth < tasks; nth += 1) {
    const before = nth % 10 === 0 ? [] : [ids[nth - 1]];
    const { task_id } = await service.create({
      description: `Make part ${nth} of the shop`,
      dependencies: before,
      labels: ['role:engineer', `part-${nth % 7}`],
    });
    ids.push(task_id);
  }
  for (let nth = 0; nth < tasks; nth += 30)
    for (const id of ids.slice(nth, nth + 10)) await service.close(id, 'done');
  const live = [];
  for (let nth = 0; nth < agents; nth += 1) {
    const { task_id } = await service.create({ description: `Work on part ${nth}` });
    await service.execute({ task: task_id, role: 'engineer', options: {} });
    live.push(task_id);
  }
  return live;
};

/** What an agent writes, as turns of 40 entries: text, a command with its output, a snapshot. */
const createAgent = async ({ service }, taskId) => {
  let nth = 0;
  const task = await service.status(taskId);
  const snapshot = { machine: 'task', value: 'started', tags: [], task };
  const of = (turn, step) => {
    const call = { call_id: `call-${turn}`, tool: 'bash' };
    if (step === 0) return ['api_call_start', { turn, model: 'bench', max_turns: 1_000 }];
    if (step < 20) return ['text_delta', { text: `Word ${step} of turn ${turn}. ` }];
    if (step === 20) return ['api_call_complete', { turn, ok: true, duration_ms: 100 }];
    if (step === 21)
      return ['tool_start', { ...call, arguments: JSON.stringify({ command: 'npm test' }) }];
    if (step < 38) return ['tool_output', { ...call, chunk: `line ${step}: ${'x'.repeat(80)}\n` }];
    if (step === 38) return ['tool_end', { ...call, ok: true, duration_ms: 80 }];
    return ['snapshot', snapshot];
  };
  return () => {
    const [type, data] = of(Math.floor(nth / 40) + 1, nth % 40);
    nth += 1;
    return { taskId, attempt: 1, type, at: Date.now(), data: JSON.stringify(data), cause: null };
  };
};

const write = async ({ journal }, next, count) => {
  for (let left = count; left > 0; left -= 1_000)
    await journal.commit({ entries: Array.from({ length: Math.min(left, 1_000) }, next) });
};

/** All agents write until the end, as many entries as the time that went by asks for. */
const startWriting = (system, writers) => {
  const began = Date.now();
  let written = 0;
  const timer = setInterval(() => {
    const due = Math.floor(((Date.now() - began) * eventsOfEach) / 1_000) - written;
    written += due;
    if (due > 0)
      void system.journal.commit({
        entries: writers.flatMap((next) => Array.from({ length: due }, next)),
      });
  }, tickMs);
  return () => clearInterval(timer);
};

const scripts = new Set(['EvaluateScript', 'FunctionCall', 'RunMicrotasks', 'TimerFire']);

/**
 * CPU time in ms of our script on the page's own thread, for each 1/60 s in which any ran: the
 * others would make the figures look better. A longer piece counts where it begins.
 */
const scriptPerFrame = (events) => {
  const own = events
    .filter(({ name, ph }) => ph === 'X' && scripts.has(name))
    .sort((one, other) => one.ts - other.ts);
  const frames = new Map();
  let end = 0;
  for (const { ts, dur = 0, tdur = dur } of own) {
    // What runs within another one is counted with it.
    if (ts < end) continue;
    end = ts + dur;
    const frame = Math.floor(ts / frameUs);
    frames.set(frame, (frames.get(frame) ?? 0) + tdur / 1_000);
  }
  return [...frames.values()];
};

const traced = async (browser, page, ms) => {
  await browser.startTracing(page, {
    categories: ['devtools.timeline', 'disabled-by-default-devtools.timeline', 'v8.execute'],
  });
  await pause(ms);
  return JSON.parse(await browser.stopTracing()).traceEvents;
};

const heapOf = async (session) => {
  await session.send('HeapProfiler.collectGarbage');
  await session.send('HeapProfiler.collectGarbage');
  return (await session.send('Runtime.getHeapUsage')).usedSize;
};

/** Odd and prime: the page drops old entries every ten seconds, and looks must not keep step. */
const looks = 37;
/** The most of many looks: what is held for a while counts too. */
const mostHeap = async (session, ms) => {
  const found = [];
  for (let look = 0; look < looks; look += 1) {
    await pause(ms / looks);
    found.push(await heapOf(session));
  }
  return Math.max(...found);
};

/** A page that is signed in, without anything in its caches. */
const openPage = async (browser, port, view) => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  await context.addInitScript(
    `sessionStorage.setItem('agent-task-server.session', ${JSON.stringify(token)})`,
  );
  const page = await context.newPage();
  await page.goto(`http://127.0.0.1:${port}/#/${view}`);
  return { page, close: () => context.close() };
};

const firstPaint = async (browser, port) => {
  const { page, close } = await openPage(browser, port, 'board');
  await page.locator('.board').waitFor();
  const ms = await page.evaluate(
    () => performance.getEntriesByName('first-contentful-paint')[0].startTime,
  );
  await close();
  return ms;
};

const measureFrames = async (browser, port, view) => {
  const { page, close } = await openPage(browser, port, view);
  await page.locator('main h1').first().waitFor();
  await pause(2_000);
  const frames = scriptPerFrame(await traced(browser, page, secondsPerView * 1_000));
  if (frames.length === 0) throw new Error(`${view}: no script was seen`);
  await close();
  report(`script in a frame, p95: ${view.split('/')[0]}`, {
    ours: percentile(frames, 0.95),
    limit: frameGoalMs,
    ratio: percentile(frames, 0.95) / frameGoalMs,
    goal: 1,
  });
};

const measureHeap = async (browser, port, view) => {
  const { page, close } = await openPage(browser, port, view);
  await page.locator('main h1').first().waitFor();
  const session = await page.context().newCDPSession(page);
  const third = (seconds * 1_000) / 3;
  await pause(third);
  const before = await mostHeap(session, third);
  const after = await mostHeap(session, third);
  await close();
  report(`most heap of the page in the last third of ${seconds} s / in the second`, {
    ours: after / 1024 ** 2,
    limit: before / 1024 ** 2,
    ratio: after / before,
    goal: heapGoal,
    unit: 'MiB',
  });
};

const running = await openSystem(
  { cap: agents, queueLimit: 10 * tasks },
  { turnMs: 24 * 3_600_000 },
);
const live = await fill(running.system);
const server = await openServer(running, { token });
const writers = await Promise.all(live.map((id) => createAgent(running.system, id)));
await write(running.system, writers[0], entriesBefore);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox'],
});
try {
  const paints = [];
  for (let load = 0; load < loads; load += 1) paints.push(await firstPaint(browser, server.port));
  report('first paint of the page', {
    ours: median(paints),
    limit: paintGoalMs,
    ratio: median(paints) / paintGoalMs,
    goal: 1,
  });
  const stop = startWriting(running.system, writers);
  const task = `task/${live[0]}`;
  for (const view of ['needs-you', 'board', 'graph', task, `machines/${live[0]}`, 'system'])
    await measureFrames(browser, server.port, view);
  await measureHeap(browser, server.port, task);
  stop();
} finally {
  await browser.close();
  await server.close();
  await running.close();
}
