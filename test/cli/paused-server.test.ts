import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { charts } from '../../src/actors/journal/chart-versions.ts';
import { openDatabase } from '../../src/actors/store/database.ts';
import { DatabaseHeldError } from '../../src/actors/store/port.ts';
import { known } from '../../src/actors/store/rows/rows.ts';
import { createSqliteStore } from '../../src/actors/store/sqlite.ts';
import { openProject } from '../support/cli.ts';

test('a server that was paused for longer than its lease goes on; when another one took over meanwhile, it saves nothing and ends', {
  tags: ['slow'],
}, async () => {
  const project = openProject(undefined, { ownServer: true });
  const { stateDir, configFile, agent, start, serverFile } = project;
  const script = join(stateDir, '..', 'script.json');
  const go = join(stateDir, '..', 'go');
  const command = `until rm ${go}; do sleep 0.02; done`;
  const work = { calls: [{ tool: 'bash', arguments: { command } }] };
  const end = { calls: [{ tool: 'finish', arguments: { status: 'done', summary: 'done' } }] };
  writeFileSync(script, JSON.stringify({ scripts: [{ turns: [work, end] }] }));
  writeFileSync(
    configFile,
    JSON.stringify({
      server: { port: 0, register_protocol_handler: false },
      sandbox: { mode: 'off' },
      api: { backend: 'scripted', script },
      store: { lease_seconds: 3 },
    }),
  );
  const server = start('agent-server', ['--server']);
  const said: string[] = [];
  server.stderr?.on('data', (text) => said.push(String(text)));
  await vi.waitFor(() => expect(serverFile()?.pid).toBe(server.pid));
  const viewOf = async (id: string) => JSON.parse((await agent('show', id, '--json')).out);
  const begin = async () => {
    const id = (await agent('create', 'Do it')).out.trim();
    await agent('engineer', id, '--async');
    await vi.waitFor(async () => expect((await viewOf(id)).phase).toBe('acting'));
    return id;
  };
  const file = join(stateDir, 'journal.db');
  const db = openDatabase({ file, heldWait: { blockingMs: 100, inPausesMs: 0 } });
  onTestFinished(db.close);
  const send = (signal: NodeJS.Signals) => process.kill(server.pid ?? 0, signal);
  /** A program that is stopped within a write keeps everybody else from writing. */
  const stopBetweenWrites = (): void => {
    send('SIGSTOP');
    try {
      void db.write(() => known(undefined));
    } catch (error) {
      send('SIGCONT');
      if (!(error instanceof DatabaseHeldError)) throw error;
      stopBetweenWrites();
    }
  };
  const pauseAnd = async (act: () => void): Promise<void> => {
    stopBetweenWrites();
    try {
      await delay(3_200);
      act();
    } finally {
      send('SIGCONT');
    }
  };

  const first = await begin();
  await pauseAnd(() => writeFileSync(go, ''));
  expect((await agent('wait', first)).code).toBe(0);
  expect((await viewOf(first)).attempt).toBe(1);

  const second = await begin();
  const other = createSqliteStore({ file, redact: (text) => text });
  const ended = once(server, 'exit');
  await pauseAnd(() => {
    other.join({ charts, node: 'other', leaseMs: 60_000, name: '*' });
    writeFileSync(go, '');
  });
  const last = other.lastSeq();

  expect(await ended).toEqual([1, null]);
  expect(said.join('')).toContain('agent-server: another server has taken over this project');
  expect([other.lastSeq(), other.actor(second)]).toMatchObject([last, { owner: 'other' }]);
  other.close();
});
