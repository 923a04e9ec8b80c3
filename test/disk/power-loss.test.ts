import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, onTestFinished } from 'vitest';
import { isLong } from '../support/long.ts';
import { noStrace, testUnless } from '../support/needs.ts';
import { randomFrom, seed } from '../support/random.ts';
import { createDisk, type Fate, fates } from './support/disk.ts';
import { type Promised, problemsOf, truthOf } from './support/image.ts';
import { recordWork } from './support/workload.ts';

const images = Number(process.env['AGENT_TEST_IMAGES'] ?? (isLong ? 20_000 : 12));
const tasks = isLong ? 20 : 10;

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

/** In memory where that can be: thousands of images need no disk of their own. */
const imageFolder = (): string => {
  const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'agent-image-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
};

/** What clients knew when this had been said. */
const promisedBy = ({ created, executed, shown }: Promised, said: string): Promised => {
  const ids = [...said.matchAll(/^id: ?(\d+)$/gm)].map(([, id]) => Number(id));
  const before = { created, executed, shown: Math.max(shown, ...ids) };
  const json = /\{"jsonrpc".*\}/.exec(said)?.[0];
  const { id, result } = JSON.parse(json ?? '{}') as { id?: string; result?: { task_id: string } };
  if (result === undefined) return before;
  if (id === 'create') return { ...before, created: [...created, result.task_id] };
  return id === 'execute'
    ? { ...before, executed: [...new Set([...executed, result.task_id])] }
    : before;
};

testUnless(noStrace)(
  'disk images after a power failure have everything that was acknowledged',
  {
    tags: ['slow'],
    timeout: 120_000 + images * 400,
  },
  async () => {
    const random = randomFrom(seed);
    const { events, root, top } = await recordWork(tasks);
    const whole = createDisk([root, top]);
    for (const event of events) whole.take(event);
    const rebuilt = imageFolder();
    whole.image(root, join(rebuilt, 'project'), () => 'all', random);
    whole.image(top, join(rebuilt, 'top'), () => 'all', random);
    // The recording is complete: with every write kept, the files are what they became.
    for (const file of ['journal.db', 'journal.db-wal'])
      expect(
        readFileSync(join(rebuilt, 'top/state', file)).equals(
          readFileSync(join(top, 'state', file)),
        ),
      ).toBe(true);
    const issues = join('.beads', 'issues.jsonl');
    expect(readFileSync(join(rebuilt, 'project', issues), 'utf8')).toBe(
      readFileSync(join(root, issues), 'utf8'),
    );
    expect(statSync(join(top, 'state/journal.db')).size).toBeGreaterThan(100_000);
    const truth = truthOf(join(rebuilt, 'top/state/journal.db'));

    const disk = createDisk([root, top]);
    let promised: Promised = { created: [], executed: [], shown: 0 };
    const tally: Record<string, number> = { images: 0 };
    const count = (what: string): void => {
      tally[what] = (tally[what] ?? 0) + 1;
    };
    const wrong: unknown[] = [];
    const tryImage = async (at: number): Promise<void> => {
      const folder = imageFolder();
      const any = (): Fate => fates[Math.floor(random() * fates.length)] ?? 'none';
      const [fate, mixed] = [any(), random() < 0.5];
      const pick = (): Fate => (mixed ? any() : fate);
      disk.image(root, join(folder, 'project'), pick, random);
      disk.image(top, join(folder, 'top'), pick, random);
      const problems = await problemsOf(folder, promised, truth);
      for (const what of ['images', mixed ? 'mixed' : fate]) count(what);
      if (problems.length > 0) wrong.push({ at, fate: mixed ? 'mixed' : fate, problems });
      rmSync(folder, { recursive: true });
      // libsql keeps the files of a closed database open until its statements are collected.
      if (tally['images'] !== undefined && tally['images'] % 100 === 0) collectGarbage();
    };
    const moments = [...events.keys()].filter(
      (at) => !['open', 'close'].includes(events[at]?.type ?? ''),
    );
    const cuts = Array.from(
      { length: images },
      () => moments[Math.floor(random() * moments.length)] ?? 0,
    );
    cuts.sort((one, other) => one - other);
    let next = 0;
    for (const [at, event] of events.entries()) {
      disk.take(event);
      if (event.type === 'said' && !disk.holds(event.fd))
        promised = promisedBy(promised, event.data.toString());
      for (; cuts[next] === at; next += 1) await tryImage(at);
    }

    process.stdout.write(
      `power loss, seed ${seed}: ${JSON.stringify(tally)}, ${events.length} events, ${promised.shown} frames shown, ${promised.created.length} creates and ${promised.executed.length} runs acknowledged\n`,
    );
    expect(wrong.slice(0, 5)).toEqual([]);
    expect([promised.created.length, promised.executed.length]).toEqual([tasks, tasks]);
    expect(truth.filter(({ type }) => type === 'completed')).toHaveLength(tasks + 2);
  },
);
