import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { makeCertificate } from '../../support/certificate.ts';
import { openProject } from '../../support/cli.ts';
import { noOpenssl, testUnless } from '../../support/needs.ts';
import { secret, startReceiver } from '../../support/receiver.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const project = (webhook: object) =>
  openProject(
    { api: { backend: 'scripted' }, notify: { webhooks: [webhook] } },
    { ownServer: true },
  );

test('an event whose server was killed before its delivery comes from the next server', {
  tags: ['slow'],
}, async () => {
  let isBack = false;
  const receiver = await startReceiver((response) => {
    if (isBack) response.writeHead(204).end();
    return isBack;
  });
  const webhook = { url: receiver.url, secret_env: 'HOOK_SECRET', allow_private: true };
  const { agentWith, stopServer } = project(webhook);
  const env = { HOOK_SECRET: secret };

  const ended = await agentWith(env, 'engineer', 'say hello');
  await receiver.until(() => receiver.requests() === 1);
  await stopServer('SIGKILL');
  isBack = true;
  await agentWith(env, 'server', 'start');
  await receiver.until(() => receiver.received.length === 1);

  expect(ended).toMatchObject({ code: 0 });
  expect(receiver.faults).toEqual([]);
  expect(receiver.received).toMatchObject([{ type: 'completed', data: { title: 'say hello' } }]);
  expect(receiver.ids[0]).toBe(receiver.ids[1]);
});

test('a webhook that fails is shown by the health and the status of the server', async () => {
  const receiver = await startReceiver((response) => {
    response.writeHead(500).end();
    return false;
  });
  const file = join(temporaryFolder(), 'secret');
  writeFileSync(file, `${secret}\n`, { mode: 0o600 });
  const { agent, serverFile } = project({
    ...{ url: receiver.url, secret_file: file, allow_private: true },
  });

  await agent('engineer', 'say hello');
  await receiver.until(() => receiver.requests() === 1);
  const health = await vi.waitFor(async () => {
    const answer = await fetch(`${serverFile().url}/health`);
    const found = (await answer.json()) as {
      readonly status: string;
      readonly checks: { readonly webhooks: { readonly status: string; readonly detail: string } };
    };
    expect(found.checks.webhooks.status).toBe('failing');
    return found;
  });
  const status = await agent('server', 'status');

  expect(health.status).toBe('degraded');
  expect(health.checks.webhooks.detail).toContain('the receiver answered 500');
  expect(status.out).toContain('the receiver answered 500');
  expect(JSON.stringify([health, status])).not.toContain(secret);
});

testUnless(noOpenssl)(
  'a receiver at https gets events when its certificate is trusted, and none otherwise',
  { tags: ['slow'] },
  async () => {
    const { path, tls } = makeCertificate();
    const receiver = await startReceiver(undefined, 0, tls);
    const webhook = { url: receiver.url, secret_env: 'HOOK_SECRET', allow_private: true };
    const { agentWith, serverFile, stopServer } = project(webhook);
    const env = { HOOK_SECRET: secret };

    await agentWith({ ...env, NODE_EXTRA_CA_CERTS: '' }, 'engineer', 'say hello');
    const refused = await vi.waitFor(async () => {
      const answer = await fetch(`${serverFile().url}/health`);
      const { checks } = (await answer.json()) as { checks: { webhooks: { detail: string } } };
      expect(checks.webhooks.detail).toContain('certificate');
      return receiver.requests();
    });
    await stopServer();
    await agentWith({ ...env, NODE_EXTRA_CA_CERTS: path }, 'server', 'start');
    await receiver.until(() => receiver.received.length === 1);

    expect(refused).toBe(0);
    expect(receiver.faults).toEqual([]);
  },
);

const url = 'https://hooks.example.org/x';

test.each([
  [{ url }, 'notify.webhooks.0: needs one of secret_env and secret_file'],
  [{ url, secret_env: 'NO_HOOK' }, 'secret_env: the variable NO_HOOK is not set'],
  [{ url, secret_env: 'WRONG' }, 'the secret must be whsec_ and 24 to 64 bytes in base64'],
  [{ url: 'http://hooks.example.org', secret_env: 'GOOD' }, 'url: must be https, or'],
  [{ url: 'https://me:pw@a.example', secret_env: 'GOOD' }, 'url: must hold no name or password'],
  [{ url, secret_env: 'GOOD', events: ['done'] }, 'notify.webhooks.0.events.0'],
])('a wrong webhook is refused: %j', async (webhook, problem) => {
  const { agentWith } = project(webhook);

  const ended = await agentWith({ WRONG: 'whsec_hunter2', GOOD: secret }, 'server', 'start');

  expect(ended.code).not.toBe(0);
  expect(ended.err).toContain(problem);
  expect(ended.err).not.toContain('hunter2');
});

test('a secret that others can read is refused', async () => {
  const file = join(temporaryFolder(), 'secret');
  writeFileSync(file, secret);
  chmodSync(file, 0o644);
  const { agent } = project({ url, secret_file: file });

  const ended = await agent('server', 'start');

  expect(ended.err).toContain(`is readable by others; run: chmod 600 ${file}`);
});

test('a file of the project that asks for notifications is refused by name', async () => {
  const { root, agent } = openProject();
  mkdirSync(join(root, '.agent', 'roles'), { recursive: true });
  writeFileSync(
    join(root, '.agent', 'roles', 'engineer.yml'),
    'notify: { commands: [{ command: [touch, never] }] }\n',
  );

  const { out } = await agent('roles');

  expect(out).toMatch(/engineer\.yml.*notify/);
});
