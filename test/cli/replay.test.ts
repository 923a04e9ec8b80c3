import { join } from 'node:path';
import Database from 'libsql';
import { expect, test } from 'vitest';
import { openProject } from '../support/cli.ts';

test('a run can be replayed, with and without a server, whole and up to a point', async () => {
  const { agent, stopServer } = openProject();
  const id = (await agent('create', 'Do it')).out.trim();
  const none = await agent('replay', id);
  await agent('engineer', id);

  const live = await agent('replay', id, '--json');
  await stopServer();
  const offline = await agent('replay', id);
  const { steps, state, difference } = JSON.parse(live.out);
  const working = steps.find(
    ({ state: at }: { state: unknown }) => JSON.stringify(at) === '{"started":"working"}',
  );
  const then = await agent('replay', id, '--at', String(working.seq), '--json');

  expect(none.out).toBe(`${id} has no recorded events\n`);
  expect([live.code, state, difference]).toEqual([0, { task: 'complete', agent: 'done' }, null]);
  expect(offline.out).toMatch(
    /started\.working +\(xstate\.done\.actor\.claim\)[\s\S]*agent 1 +thinking[\s\S]*task +complete/,
  );
  expect(JSON.parse(then.out)).toMatchObject({
    state: { task: { started: 'working' } },
    context: { task: { attempt: 1 } },
  });
});

test('a changed journal is detected', async () => {
  const { agent, stopServer, stateDir } = openProject();
  const id = (await agent('create', 'Do it')).out.trim();
  await agent('engineer', id);
  await stopServer();
  const db = new Database(join(stateDir, 'journal.db'));
  db.prepare(
    "update journal set cause = replace(cause, 'done.actor.claim', 'error.actor.claim')",
  ).run();
  db.close();

  const { code, out, err } = await agent('replay', id);

  expect(code).toBe(1);
  expect(out).toContain('DIFFERS from the record');
  expect(err).toMatch(/at \d+ the task comes to .* by xstate\.error\.actor\.claim/);
});

test.each(['-1', '1.5', 'x'])('an invalid --at %s is refused', async (at) => {
  const { agent } = openProject();
  const id = (await agent('create', 'Do it')).out.trim();

  expect(await agent('replay', id, `--at=${at}`)).toMatchObject({
    code: 2,
    err: expect.stringMatching(/--at(: expected a number of the journal| needs a number)/),
  });
});
