import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'libsql';
import { expect, test, vi } from 'vitest';
import { finish, startSystem, type Turn, untilStatus } from '../../support/running.ts';
import { temporaryFolder } from '../../support/temporary.ts';

/** Made by scripts/stored-states.mjs, which says what the tasks do. */
const folder = join(import.meta.dirname, '../../fixtures/stored-states');

const bash = (command: string): Turn => ({ calls: [{ tool: 'bash', arguments: { command } }] });
const turns = [bash('true'), bash('true'), finish('done')];

/** A limit of time goes on while no server runs. */
const extendDeadlines = (stateDir: string): void => {
  const db = new Database(join(stateDir, 'journal.db'));
  const rows = db.prepare('select id, snapshot from actors').all() as {
    id: string;
    snapshot: string;
  }[];
  for (const { id, snapshot } of rows) {
    const saved = JSON.parse(snapshot);
    if (saved.context.deadlineAt === null) continue;
    saved.context.deadlineAt = Date.now() + 600_000;
    db.prepare('update actors set snapshot = ? where id = ?').run(JSON.stringify(saved), id);
  }
  db.close();
};

const ends: Readonly<Record<string, string>> = { fails: 'failed', cancelled: 'cancelled' };

test.each(readdirSync(folder))(
  'what a killed server of %s stored is gone on with',
  async (name) => {
    const [root, stateDir] = [temporaryFolder(), temporaryFolder()];
    execFileSync('tar', ['-xzf', join(folder, name), '-C', stateDir]);
    const tasksFile = join(stateDir, '.beads');
    if (existsSync(tasksFile)) cpSync(tasksFile, join(root, '.beads'), { recursive: true });
    writeFileSync(join(root, 'go'), '');
    extendDeadlines(stateDir);

    const running = await startSystem({
      ...{ root, stateDir, turns },
      options: { onInterrupted: 'repeat' },
      // A replay with these charts makes fields that earlier ones did not save.
      tampered: true,
    });
    const { service } = running;
    const { tasks } = await service.list({});
    const asked = tasks.find(({ title }) => title === 'asks');
    const id = asked?.task_id ?? '';
    const { attempt, awaiting } = await vi.waitFor(async () => {
      const view = await service.status(id);
      expect(view.awaiting).toBeDefined();
      return view;
    });
    await service.respond(id, attempt, {
      type: 'respond',
      inputId: awaiting?.input_id ?? '',
      text: 'blue',
      decision: null,
    });

    expect(tasks.length).toBeGreaterThanOrEqual(7);
    for (const { task_id, title } of tasks) {
      const wanted = ends[title] ?? 'complete';
      const wasAsked = title !== 'depends' || (await service.status(task_id)).attempt > 0;
      if (!wasAsked) continue;
      const ended = await untilStatus(running, task_id, 'complete', 'failed', 'cancelled');
      expect(ended, `${title}: ${JSON.stringify(ended.error)}`).toMatchObject({ status: wanted });
      expect(ended.attempt).toBeLessThanOrEqual(1);
      expect((await service.explain(task_id)).state).toBeDefined();
    }
  },
);
