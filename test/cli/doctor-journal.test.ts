import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'libsql';
import { expect, test } from 'vitest';
import { openProject } from '../support/cli.ts';

test('doctor --journal names the entry that somebody changed, while a server runs and after it', async () => {
  const { agent, stateDir, stopServer } = openProject();
  const none = await agent('doctor', '--journal');
  const id = (await agent('create', 'Do it')).out.trim();
  await agent('engineer', id);
  const live = await agent('doctor', '--journal', '--json');
  await stopServer();
  const sound = await agent('doctor', '--journal');

  const db = new Database(join(stateDir, 'journal.db'));
  const [whole] = db.prepare("select seq from journal where data like '%Do it%'").all() as {
    seq: number;
  }[];
  db.prepare("update journal set data = replace(data, 'Do it', 'Do that') where seq = ?").run(
    whole?.seq,
  );
  db.close();
  const changed = await agent('doctor', '--journal');
  const asJson = await agent('doctor', '--journal', '--json');

  expect(none).toMatchObject({ code: 0, out: '0 entries of 0 tasks: as they were written\n' });
  expect([live.code, JSON.parse(live.out)]).toMatchObject([
    0,
    { tasks: 1, without_hash: 0, faults: [] },
  ]);
  expect(sound.out).toMatch(/^\d+ entries of 1 task: as they were written\n$/);
  expect(changed.code).toBe(1);
  expect(changed.out).toMatch(
    new RegExp(`^${id}  entry ${whole?.seq} was changed after it was written\n.* 1 fault\n$`),
  );
  expect(JSON.parse(asJson.out).faults).toEqual([
    { task_id: id, seq: whole?.seq, problem: 'was changed after it was written' },
  ]);
});

test('doctor --journal refuses a file that is no journal', async () => {
  const { agent, stateDir } = openProject();
  await agent('create', 'Do it');
  for (const suffix of ['', '-wal', '-shm'])
    writeFileSync(join(stateDir, `journal.db${suffix}`), 'no database');

  expect(await agent('doctor', '--journal')).toMatchObject({
    code: 6,
    err: expect.stringContaining('cannot be opened'),
  });
});
