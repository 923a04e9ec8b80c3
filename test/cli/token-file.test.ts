import {
  chmodSync,
  mkdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { readSharedToken } from '../../src/cli/server/secrets/token-file.ts';
import { openProject, plain } from '../support/cli.ts';
import { temporaryFolder } from '../support/temporary.ts';

const token = 'k'.repeat(64);
const other = 'j'.repeat(64);

/** A project whose configuration names a token file, which is not there yet. */
const open = (log = {}) => {
  const project = openProject();
  const file = join(dirname(project.configFile), 'shared-token');
  const server = { ...plain.server, token_file: file };
  writeFileSync(
    project.configFile,
    JSON.stringify({ ...plain, server, api: { backend: 'scripted' }, ...log }),
  );
  const put = (text: string, mode = 0o600) => {
    writeFileSync(`${file}.new`, text, { mode });
    chmodSync(`${file}.new`, mode);
    renameSync(`${file}.new`, file);
  };
  return { ...project, file, put };
};

test.each<[string, (file: string) => void, string]>([
  ['is missing', () => {}, 'cannot be read'],
  ['is empty', (file) => writeFileSync(file, '\n', { mode: 0o600 }), 'is empty; make one'],
  [
    'is too short',
    (file) => writeFileSync(file, `${'a'.repeat(31)}\n`, { mode: 0o600 }),
    '(it has 31 characters)',
  ],
  [
    'holds other characters',
    (file) => writeFileSync(file, `${'a'.repeat(40)} b`, { mode: 0o600 }),
    'letters, digits, - and _',
  ],
  [
    'others may read',
    (file) => {
      writeFileSync(file, `${token}\n`);
      chmodSync(file, 0o640);
    },
    'run: chmod 600',
  ],
  ['is a folder', (file) => mkdirSync(file, { mode: 0o700 }), 'is not a regular file'],
])('a token file that %s is refused, with what to do', (_, make, words) => {
  const file = join(temporaryFolder(), 'token');
  make(file);

  expect(() => readSharedToken(file)).toThrow(`server.token_file: ${file} `);
  expect(() => readSharedToken(file)).toThrow(words);
});

test('a server does not start with a bad token file, and does not show it', async () => {
  const { server, put } = open();
  put(`${token}\n`, 0o604);

  const ended = await server('--server');

  expect(ended).toMatchObject({ code: 78, err: expect.stringContaining('is readable by others') });
  expect(ended.err).not.toContain(token);
});

test('commands find the token where the configuration has it, and do not replace it', async () => {
  const { agent, agentWith, put, file, stateDir } = open();
  put(`${token}\n`);

  expect((await agent('token')).out).toBe(`${token}\n`);
  expect(JSON.parse((await agent('token', '--json')).out)).toEqual({ token, file });
  expect(await agent('token', 'rotate')).toMatchObject({
    code: 2,
    err: expect.stringContaining('put a new token there'),
  });
  await agent('server', 'start');
  expect(readFileSync(join(stateDir, 'server.json'), 'utf8')).not.toContain(token);
  const unset = await agentWith({ AGENT_SERVER_CONFIG: undefined }, 'server', 'status');
  expect(unset.out, 'without the configuration').toContain('is healthy');
});

test('a new token counts from the next request on, and neither is shown', async () => {
  const { agent, put, serverFile } = open({ logging: { level: 'debug' } });
  put(`${token}\n`);
  await agent('server', 'start');
  const { url } = serverFile();
  const statusWith = async (given: string) =>
    (await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${given}` } })).status;
  expect([await statusWith(token), await statusWith(other)]).toEqual([200, 401]);

  put(`${other}\n`);

  expect([await statusWith(token), await statusWith(other)]).toEqual([401, 200]);
  const created = await agent('create', `Never say ${other} nor ${token}`, '--json');
  expect(created.out).not.toContain(other);
  put('half');
  expect(await statusWith(other), 'a bad file changes nothing').toBe(200);
  expect((await agent('server', 'logs', '--lines', '9000')).out).not.toMatch(/k{64}|j{64}/);
});

test('a link to the token is followed, as Kubernetes has it', async () => {
  const { agent, put, file } = open();
  put(`${token}\n`);
  renameSync(file, `${file}.data`);
  symlinkSync(`${file}.data`, file);

  expect((await agent('token')).out).toBe(`${token}\n`);
});
