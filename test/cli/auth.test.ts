import { chmodSync, existsSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { openProject, plain } from '../support/cli.ts';
import { startModelServer } from '../support/model-server.ts';
import { temporaryFolder } from '../support/temporary.ts';

const first = 'sk-first-0123456789';
const second = 'sk-second-0123456789';

const open = (api: object = {}, more: object = {}) => {
  const project = openProject({ ...plain, api, ...more });
  const file = join(project.env.HOME, '.config', 'agent-task-server', 'keys.json');
  return {
    ...project,
    file,
    login: (provider: string, key: string) =>
      project.shell(`printf '%s' '${key}' | $AGENT auth login ${provider}`),
    kept: () => (existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : null),
  };
};

const finished = {
  text: '',
  calls: [{ id: 'c1', name: 'finish', arguments: '{"status":"done","summary":"fine"}' }],
};

/** Repeats the key that it was given. */
const startProvider = () =>
  startModelServer((request) => {
    const key = String(request.headers['x-api-key']);
    return { kind: 'answer', ...finished, text: `your key is ${key}` };
  });

test('a login is kept for this user alone, and said by status and doctor without the key', async () => {
  const { login, agent, file, kept } = open();

  const done = await login('anthropic', `${first}\n`);
  const [status, doctor] = [await agent('auth', 'status'), await agent('doctor')];
  const json = JSON.parse((await agent('auth', 'status', 'anthropic', '--json')).out);

  expect(done).toMatchObject({ code: 0, out: expect.stringContaining(file), err: '' });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(kept()).toEqual({ anthropic: first });
  expect(status.out).toMatch(/^anthropic +its key is in .*keys\.json, by agent auth login$/m);
  expect(status.out).toMatch(/^groq +no key; keep one: agent auth login groq$/m);
  expect(status.out).toMatch(/^ollama +it needs no key$/m);
  expect(json).toEqual([
    { provider: 'anthropic', source: 'kept', file, variables: ['ANTHROPIC_API_KEY'] },
  ]);
  expect(doctor.out.replaceAll(/\s+/g, ' ')).toMatch(
    /ok model anthropic\/claude-sonnet-4-5 at api\.anthropic\.com; its key is in .*keys\.json/,
  );
  expect(status.out + doctor.out).not.toContain(first);
});

test('a server without a key uses one that is kept later, the newest at its next call, and shows none', async () => {
  const provider = await startProvider();
  const project = open();
  const env = { ANTHROPIC_BASE_URL: provider.origin };
  await project.agentWith(env, 'server', 'start');
  const without = await project.agentWith(env, 'engineer', 'Do One now');

  await project.login('anthropic', first);
  const one = await project.agentWith(env, 'engineer', 'Do Two now');
  await project.login('anthropic', second);
  const two = await project.agentWith(env, 'engineer', 'Do Three now');
  await project.agentWith(env, 'auth', 'logout', 'anthropic');
  const removed = await project.agentWith(env, 'engineer', 'Do Four now');
  const stored = await project.agentWith(env, 'list', '--all', '--json');
  const log = readFileSync(join(project.stateDir, 'server.log'), 'utf8');

  expect(without).toMatchObject({
    code: 7,
    err: expect.stringContaining('keep the key of your provider (agent auth login anthropic)'),
  });
  expect([one.code, two.code, removed.code], one.err + two.err).toEqual([0, 0, 7]);
  expect(provider.requests.map(({ headers }) => headers['x-api-key'])).toEqual([first, second]);
  expect(provider.requests.map(({ path }) => path)).toEqual(['/v1/messages', '/v1/messages']);
  expect(one.out).toContain('your key is [secret]');
  expect(one.out + two.out + stored.out + log).not.toMatch(/sk-(first|second)/);
});

test('a variable with a line end or spaces is used without them, and shown nowhere', async () => {
  const provider = await startProvider();
  const env = { ANTHROPIC_BASE_URL: provider.origin, ANTHROPIC_API_KEY: ` ${first}\r\n` };

  const { code, out, err } = await open().agentWith(env, 'engineer', 'Do One now');

  expect(code, err).toBe(0);
  expect(provider.requests.map(({ headers }) => headers['x-api-key'])).toEqual([first]);
  expect(out).toContain('your key is [secret]');
  expect(out + err).not.toContain(first);
});

test.each([
  ['sk-first\n0123456789', 'ANTHROPIC_API_KEY holds no key: there are several lines'],
  [`"${first}"`, 'ANTHROPIC_API_KEY holds no key: give the key alone, without quotes'],
  ['sk-fürst-0123456789', 'ANTHROPIC_API_KEY holds no key: a key has no spaces'],
  ['  ', 'no key; keep one: agent auth login anthropic'],
])('the variable %j is named by doctor and status', async (key, said) => {
  const { agentWith } = open({ provider_model: 'anthropic/claude-opus-4-1', backend: 'builtin' });
  const env = { ANTHROPIC_API_KEY: key };

  const status = await agentWith(env, 'auth', 'status', 'anthropic');
  const doctor = await agentWith(env, 'doctor');

  expect(status.out).toContain(said);
  expect(doctor.out.replaceAll(/\s+/g, ' ')).toMatch(
    key.trim() === '' ? /problem model ANTHROPIC_API_KEY is not set/ : /problem model .* holds no/,
  );
  expect(status.out + doctor.out).not.toMatch(/0123456789/);
});

test.each([
  ['', 'holds no key: it is empty'],
  ['sk-a\nsk-b\n', 'holds no key: there are several lines; give the key alone'],
  [null, 'does not exist'],
])('a key_file that holds %j is refused, and doctor says so once', async (text, why) => {
  const file = join(temporaryFolder(), 'key');
  if (text !== null) writeFileSync(file, text, { mode: 0o600 });
  const work = { base_url: 'https://models.example.com/v1', key_file: file };
  const { agent } = open({ provider_model: 'work/m' }, { providers: { work } });

  const [doctor, status] = [await agent('doctor'), await agent('auth', 'status')];

  const said = `providers.work.key_file: ${file} ${why}`;
  expect(doctor.out.replaceAll(/\s+/g, ' ').split(said)).toHaveLength(2);
  expect(status).toMatchObject({ code: 78, err: expect.stringContaining(said) });
});

test('an attempt goes on with a key that is replaced, and stops without one', async () => {
  const project = open({ backend: 'builtin' });
  await project.login('anthropic', first);
  const keep = (keys: object): void => {
    writeFileSync(`${project.file}.new`, JSON.stringify(keys), { mode: 0o600 });
    renameSync(`${project.file}.new`, project.file);
  };
  const provider = await startModelServer((_, number) => {
    keep(number === 1 ? { anthropic: second } : {});
    const calls = [{ id: `c${number}`, name: 'list_files', arguments: '{}' }];
    return { kind: 'answer', text: `the first was ${first}`, calls };
  });
  const env = { ANTHROPIC_BASE_URL: provider.origin };

  const { code, out, err } = await project.agentWith(env, 'engineer', 'Do it');

  expect(code).toBe(1);
  expect(provider.requests.map(({ headers }) => headers['x-api-key'])).toEqual([first, second]);
  expect(out + err).toContain("keep a key with 'agent auth login anthropic'");
  expect(out).toContain('the first was [secret]');
  expect(out + err).not.toContain(first);
});

test('the variable comes before a kept key, and the login says so', async () => {
  const provider = await startProvider();
  const project = open();
  await project.login('anthropic', first);
  const env = { ANTHROPIC_BASE_URL: provider.origin, ANTHROPIC_API_KEY: second };

  const status = await project.agentWith(env, 'auth', 'status', 'anthropic');
  await project.agentWith(env, 'engineer', 'Do One now');
  const again = await project.shell(
    `printf x | ANTHROPIC_API_KEY=${second} $AGENT auth login anthropic`,
  );

  expect(status.out).toMatch(/^anthropic +ANTHROPIC_API_KEY is set$/m);
  expect(provider.requests.map(({ headers }) => headers['x-api-key'])).toEqual([second]);
  expect(again.err).toContain('note: ANTHROPIC_API_KEY is set, which comes before it');
});

test.each([
  ['antropic', 'k', 'there is no provider antropic; did you mean anthropic?'],
  ['hooli', 'k', 'there is no provider hooli; the providers are openai, anthropic,'],
  ['anthropic', '', 'no key was kept: there is none'],
  ['anthropic', ' \n ', 'no key was kept: there is none'],
  ['anthropic', 'a\nb', 'there are several lines; give the key alone'],
  ['anthropic', 'sk a', 'a key has no spaces'],
  ['anthropic', 'ANTHROPIC_API_KEY=sk-a', 'give the key alone, without ANTHROPIC_API_KEY='],
  ['anthropic', 'x'.repeat(5_000), 'a key has at most 4096 characters'],
  ['ollama', 'k', 'ollama needs no key'],
])('a login to %s with %j is refused', async (provider, key, why) => {
  const { login, kept } = open();

  const { code, out, err } = await login(provider, key);

  expect({ code, out, err }).toEqual({ code: 2, out: '', err: expect.stringContaining(why) });
  expect(kept()).toBe(null);
});

test.each([
  [0o644, '{"openai":"sk-0123456789"}', /is readable by others; run: chmod 600/],
  [0o600, '["sk-0123456789"]', /is not as agent auth login writes it; remove it/],
  [0o600, 'sk-0123456789', /is not as agent auth login writes it; remove it/],
])('kept keys of mode %o with %s are refused, with what to do', async (mode, text, why) => {
  const { login, agent, file } = open();
  await mkdir(dirname(file), { recursive: true });
  writeFileSync(file, text);
  chmodSync(file, mode);

  const refused = [
    await login('anthropic', first),
    await agent('auth', 'status'),
    await agent('server', 'start'),
  ];
  const doctor = await agent('doctor');

  expect(refused.map(({ code }) => code)).toEqual([78, 78, 1]);
  for (const { err } of refused) expect(err).toMatch(why);
  expect(doctor.out.replaceAll(/\s+/g, ' ')).toMatch(new RegExp(`problem model .*${why.source}`));
  expect(readFileSync(file, 'utf8')).toBe(text);
  for (const { out, err } of [...refused, doctor]) expect(out + err).not.toContain('sk-0123456789');
});

test('a file that others can read since is not used by a server that runs', async () => {
  const provider = await startProvider();
  const project = open({ backend: 'builtin' });
  await project.login('anthropic', first);
  const env = { ANTHROPIC_BASE_URL: provider.origin };
  await project.agentWith(env, 'server', 'start');
  chmodSync(project.file, 0o640);

  const { code } = await project.agentWith(env, 'engineer', 'Do One now');

  expect(code).toBe(7);
  expect(provider.requests).toEqual([]);
});

test('logins at the same time lose nothing, and a logout removes one key', async () => {
  const { login, agent, kept } = open();
  const names = ['openai', 'anthropic', 'google', 'groq', 'xai'];

  await Promise.all(names.map((name) => login(name, `${first}-${name}`)));
  const all = kept();
  const logout = await agent('auth', 'logout', 'groq');

  expect(all).toEqual(Object.fromEntries(names.map((name) => [name, `${first}-${name}`])));
  expect(logout).toMatchObject({ code: 0, out: 'removed the key of groq\n' });
  expect(Object.keys(kept()).toSorted()).toEqual(['anthropic', 'google', 'openai', 'xai']);
});

const typed = async (text: string) => {
  const { startOnTerminal, kept } = open();
  const child = startOnTerminal('auth', 'login', 'anthropic');
  let shown = '';
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    shown += chunk;
    if (chunk.includes('it is not shown')) child.stdin?.write(text);
  });
  const code = await new Promise((resolve) => child.once('close', resolve));
  return { code, shown, kept: kept() };
};

test('on a terminal the key is asked for, and not shown', async () => {
  const { code, shown, kept } = await typed(`${first}\r`);

  expect(code, shown).toBe(0);
  expect(shown).toContain('kept the key of anthropic');
  expect(shown).not.toContain(first);
  expect(kept).toEqual({ anthropic: first });
});

test.each([
  ['a paste of several lines', `${first}\r${second}\r`, 2, 'there are several lines'],
  ['Enter alone', '\r', 2, 'no key was kept: there is none'],
  ['Ctrl-D', '\u0004', 2, 'no key was kept: there is none'],
])('%s at the prompt keeps nothing', async (_, text, expected, why) => {
  const { code, shown, kept } = await typed(text);

  expect({ code, kept }, shown).toEqual({ code: expected, kept: null });
  expect(shown).toContain(why);
  expect(shown).not.toMatch(/sk-/);
});

test('a login needs no project', async () => {
  const project = open();

  const { code, err } = await project.shell(
    `cd "$HOME" && printf '${first}' | $AGENT auth login anthropic`,
  );

  expect(code, err).toBe(0);
  expect(project.kept()).toEqual({ anthropic: first });
});

test('a new key ends the pause that the one before had brought', async () => {
  const provider = await startModelServer((request) =>
    request.headers['x-api-key'] === second
      ? { kind: 'answer', ...finished }
      : { kind: 'status', status: 402, body: { error: { message: 'Add more credits.' } } },
  );
  const project = open();
  const env = { ANTHROPIC_BASE_URL: provider.origin };
  await project.login('anthropic', first);
  const parked = await project.agentWith(env, 'engineer', 'Say hello', '--async');
  const id = /bd-\w+/.exec(parked.out + parked.err)?.[0] ?? '';
  await vi.waitFor(async () =>
    expect((await project.agent('show', id)).out).toContain('Add more credits.'),
  );

  await project.login('anthropic', second);

  expect(await project.agent('wait', id)).toMatchObject({ code: 0 });
});

test('a run says that others can read the file of keys', async () => {
  const project = open();
  await project.login('anthropic', first);
  await project.agent('server', 'start');
  chmodSync(project.file, 0o644);

  const run = await project.agent('engineer', 'Say hello');
  const status = await project.agent('server', 'status');

  expect(run).toMatchObject({
    code: 7,
    err: expect.stringMatching(/readable by others.*chmod 600/),
  });
  expect(status.out).toMatch(/model +missing: .*readable by others/);
});

test('after a login explain says that the model was missing, and is no more', async () => {
  const project = open();
  const id = (await project.agent('create', 'Say hello', '--role', 'engineer')).out.trim();
  const refused = await project.agent('engineer', id);
  const before = await project.agent('explain', id);
  await project.login('anthropic', first);

  const after = await project.agent('explain', id);

  expect(refused.code).toBe(7);
  expect(before.out).toMatch(/because OPENAI_API_KEY is not set/);
  expect(after.out).toMatch(/because no model was set up when its run was to begin/);
});
