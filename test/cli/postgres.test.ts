import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { openProject, plain } from '../support/cli.ts';
import { describeUnless } from '../support/needs.ts';
import { freshAddress, inPostgres, noPostgres } from '../support/postgres.ts';

/** A project whose store is in PostgreSQL; its agents wait until the file `go` is there. */
const openHere = async (url: string) => {
  const project = openProject(undefined, { ownServer: true });
  const { stateDir, configFile } = project;
  const [script, go] = ['script.json', 'go'].map((name) => join(stateDir, '..', name));
  const command = `until rm ${go}; do sleep 0.02; done`;
  const work = { calls: [{ tool: 'bash', arguments: { command } }] };
  const end = { calls: [{ tool: 'finish', arguments: { status: 'done', summary: 'done' } }] };
  writeFileSync(script ?? '', JSON.stringify({ scripts: [{ turns: [work, end] }] }));
  writeFileSync(
    configFile,
    JSON.stringify({
      ...plain,
      api: { backend: 'scripted', script },
      agent: { on_interrupted: 'repeat' },
      store: { url: 'DATABASE_URL' },
    }),
  );
  const agent = (...words: string[]) => project.agentWith({ DATABASE_URL: url }, ...words);
  const viewOf = async (id: string) => JSON.parse((await agent('show', id, '--json')).out);
  const until = async (id: string, phase: string) =>
    vi.waitFor(async () => expect((await viewOf(id)).phase).toBe(phase));
  return { ...project, agent, viewOf, until, open: () => writeFileSync(go ?? '', '') };
};

describeUnless(noPostgres)('a server on PostgreSQL', () => {
  test('runs tasks, goes on after kill -9, and its database is read without it', {
    tags: ['slow'],
    timeout: 240_000,
  }, async () => {
    const url = await freshAddress();
    const { agent, viewOf, until, open, stopServer, stateDir, root } = await openHere(url);
    expect(await agent('server', 'start')).toMatchObject({ code: 0 });
    const first = (await agent('create', 'First')).out.trim();
    const second = (await agent('create', 'Second')).out.trim();
    await agent('dep', 'add', second, first);

    expect((await agent('engineer', second)).code).not.toBe(0);
    await agent('engineer', first, '--async');
    await until(first, 'acting');
    await stopServer('SIGKILL');
    expect((await viewOf(first)).status).toBe('started');

    await agent('server', 'start');
    await until(first, 'acting');
    open();
    expect((await agent('wait', first)).code).toBe(0);
    expect(await viewOf(first)).toMatchObject({ status: 'complete', attempt: 1 });

    await agent('engineer', second, '--async');
    await until(second, 'acting');
    expect((await agent('cancel', second)).code).toBe(0);
    await agent('wait', second);
    expect((await viewOf(second)).status).toBe('cancelled');
    expect((await agent('doctor', '--journal')).out).toContain('as they were written');

    await stopServer();
    expect((await agent('list', '--all')).out).toContain('First');
    expect(readFileSync(join(root, '.beads', 'issues.jsonl'), 'utf8')).toContain('"First"');
    const log = readFileSync(join(stateDir, 'server.log'), 'utf8');
    expect(log).toContain('tasks and journal are kept in postgres://postgres@127.0.0.1');
    const [{ entries } = {}] = await inPostgres(
      url,
      'select count(*)::int as entries from journal',
    );
    expect(entries).toBeGreaterThan(10);
  });

  test('makes the tables, which no command without it does', {
    tags: ['slow'],
    timeout: 60_000,
  }, async () => {
    const url = await freshAddress();
    const { agent, stateDir } = await openHere(url);
    const schema = new URL(url).searchParams.get('schema') ?? '';
    const made = async () =>
      (await inPostgres(url, `select 1 from pg_namespace where nspname = '${schema}'`)).length;
    const commands = [
      ['list'],
      ['create', 'Nowhere'],
      ['show', 'bd-a1b2'],
      ['prune'],
      ['doctor', '--journal'],
      ['store', 'export', join(stateDir, '..', 'a.store')],
    ];

    for (const words of commands)
      expect(await agent(...words)).toMatchObject({
        code: 6,
        out: '',
        err: expect.stringContaining(
          `has no tables in the schema ${schema}: check the schema in the address (store.url), or let a server make them: agent server start`,
        ),
      });
    expect((await agent('doctor')).out).toContain(`no tables in the schema ${schema}`);
    expect(await made()).toBe(0);
    expect(await agent('server', 'start')).toMatchObject({ code: 0 });
    expect(await agent('server', 'stop')).toMatchObject({ code: 0 });
    expect(await agent('create', 'There')).toMatchObject({ code: 0 });

    await inPostgres(
      url,
      'delete from schema_versions where version = (select max(version) from schema_versions)',
    );
    const { code, err } = await agent('list');
    expect([code, err]).toEqual([6, expect.stringMatching(/and this program needs version \d+: /)]);
  });

  test('takes no password from the command line or a file, and shows none', async () => {
    const { server, configFile, agentWith } = openProject();

    const onLine = await server('--server', '--store', 'postgres://amy:hidden-word@h/d');
    expect(onLine).toMatchObject({
      code: 78,
      err: expect.stringContaining('--store: store.url: a password would be seen here'),
    });
    expect(onLine.err + onLine.out).not.toContain('hidden-word');

    writeFileSync(configFile, JSON.stringify({ ...plain, store: { url: 'DATABASE_URL' } }));
    const missing = await agentWith({}, 'list');
    expect(missing.err).toContain('store.url names the variable DATABASE_URL, which is not set');
    const away = await agentWith(
      { DATABASE_URL: 'postgres://amy:hidden-word@127.0.0.1:1/d' },
      'list',
    );
    expect([away.code === 0, away.err]).toEqual([
      false,
      expect.stringContaining('postgres://amy@127.0.0.1:1/d does not answer'),
    ]);
    expect(away.err + away.out).not.toContain('hidden-word');
  });
});
