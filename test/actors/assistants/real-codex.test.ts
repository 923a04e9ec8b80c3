import {
  existsSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createCodex } from '../../../src/actors/assistants/codex.ts';
import { createBubblewrap } from '../../../src/actors/sandbox/bubblewrap.ts';
import { fakeAssistants } from '../../support/assistants.ts';
import { png } from '../../support/images.ts';
import { isLong } from '../../support/long.ts';
import { type Answer, startModelServer } from '../../support/model-server.ts';
import { processesWith } from '../../support/processes.ts';
import { realCodex } from '../../support/real-codex.ts';
import { startSystem, untilStatus } from '../../support/running.ts';

const command = (cmd: string, number: number): Answer => ({
  kind: 'answer',
  calls: [{ id: `call_${number}`, name: 'exec_command', arguments: JSON.stringify({ cmd }) }],
});

/** The model's answers, call by call: two runs, since the work of the first fails its check. */
const said: readonly Answer[] = [
  command(
    'echo wrong > made.txt; env; (: >> /proc/sys/kernel/core_pattern) && echo kernel is open; touch ~/made-by-codex',
    1,
  ),
  { kind: 'answer', text: 'I made it ☃.' },
  command('echo right > made.txt', 3),
  { kind: 'answer', text: 'I mended it.' },
];

const key = 'sk-a-key-that-no-command-may-see';

const sandbox = createBubblewrap({ readPaths: [], network: false });

/**
 * Its own home, which names our provider; codex creates its helpers only outside the temporary
 * folder.
 */
const homeFor = (baseURL: string) => {
  const home = realpathSync(mkdtempSync('/var/tmp/agent-test-'));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  const provider = `name = "scripted"\nbase_url = "${baseURL}"\nwire_api = "responses"\nenv_key = "CODEX_API_KEY"\n`;
  const quiet = 'check_for_update_on_startup = false\n[analytics]\nenabled = false\n';
  const text = `model_provider = "scripted"\nmodel = "gpt-5.1"\n${quiet}[model_providers.scripted]\n${provider}`;
  writeFileSync(join(home, 'config.toml'), text);
  return { CODEX_HOME: home, CODEX_API_KEY: key };
};

test('the real codex completes a task with our scripted model, and resumes its session when its work is sent back', async ({
  skip,
}) => {
  if (!isLong) return skip('npm run test:long runs the real codex');
  const codex = await realCodex();
  if ('reason' in codex) return skip(codex.reason);
  const provider = await startModelServer(
    (_, number) => said[number - 1] ?? { kind: 'status', status: 400 },
  );
  const secrets = homeFor(provider.baseURL);
  const running = await startSystem({
    assistants: fakeAssistants({ codex: createCodex(codex), secrets }),
    sandbox,
    options: { backend: 'codex' },
  });
  const { task_id: id } = await running.service.create({ description: 'make the file' });
  const verify = ['grep -q right made.txt || { echo it is wrong; exit 1; }'];
  await running.service.execute({ task: id, role: 'engineer', options: { verify } });

  const view = await untilStatus(running, id, 'complete', 'failed');
  const asked = provider.requests.map(({ body }) => JSON.stringify(body));

  expect(view).toMatchObject({ status: 'complete', attempt: 1, result: 'I mended it.' });
  expect(readFileSync(join(running.root, 'made.txt'), 'utf8')).toBe('right\n');
  expect(asked).toHaveLength(4);
  expect(asked[0]).toContain('You are an engineer.');
  expect(asked[2]).toContain('it is wrong');
  expect(asked[2]).toContain('I made it ☃.');
  expect(asked.join()).not.toContain(key);
  expect(asked.join()).not.toContain('kernel is open\\n');
  expect(existsSync(join(homedir(), 'made-by-codex'))).toBe(false);
  expect(provider.requests[0]?.headers['authorization']).toBe(`Bearer ${key}`);
  // The provider reports 11 tokens in and 7 out per call.
  expect(view.usage).toMatchObject({
    model_calls: 4,
    turns: 4,
    input_tokens: 44,
    output_tokens: 28,
  });
}, 300_000);

test('cancel ends every process of the real codex and of the command in its sandbox', async ({
  skip,
}) => {
  if (!isLong) return skip('npm run test:long runs the real codex');
  const codex = await realCodex();
  if ('reason' in codex) return skip(codex.reason);
  const provider = await startModelServer(() => command('sleep 611', 1));
  const running = await startSystem({
    assistants: fakeAssistants({
      codex: createCodex(codex),
      secrets: homeFor(provider.baseURL),
    }),
    sandbox,
    options: { backend: 'codex' },
  });
  const { task_id: id } = await running.service.create({ description: 'sleep' });
  await running.service.execute({ task: id, role: 'engineer', options: {} });
  const mark = new RegExp(`\0ATS_ATTEMPT=[0-9a-f]{12}/${id}#1\0`);
  await vi.waitFor(() => expect(processesWith(mark).join()).toContain('sleep 611'));

  await running.service.cancel(id, null);
  await untilStatus(running, id, 'cancelled');

  expect(processesWith(mark)).toEqual([]);
}, 300_000);

test('the real codex is stopped at its token limit while it works', async ({ skip }) => {
  if (!isLong) return skip('npm run test:long runs the real codex');
  const codex = await realCodex();
  if ('reason' in codex) return skip(codex.reason);
  const provider = await startModelServer((_, number) => command('sleep 0.3', number));
  const running = await startSystem({
    assistants: fakeAssistants({
      codex: createCodex(codex),
      secrets: homeFor(provider.baseURL),
    }),
    sandbox,
    options: { backend: 'codex' },
  });
  const { task_id: id } = await running.service.create({ description: 'go on for ever' });
  await running.service.execute({
    task: id,
    role: 'engineer',
    options: { maxTokensTotal: 60, maxTurns: 1_000 },
  });

  const view = await untilStatus(running, id, 'complete', 'failed');

  expect(view.error).toMatchObject({
    code: 'budget_exceeded',
    facts: { limit: 'max_tokens_total' },
  });
  expect(view.usage.input_tokens % 11).toBe(0);
  expect(provider.requests.length).toBeLessThan(30);
}, 300_000);

test('the real codex sends the images of its task to our scripted model', async ({ skip }) => {
  if (!isLong) return skip('npm run test:long runs the real codex');
  const codex = await realCodex();
  if ('reason' in codex) return skip(codex.reason);
  const provider = await startModelServer(() => ({ kind: 'answer', text: 'I see it.' }));
  const secrets = homeFor(provider.baseURL);
  const running = await startSystem({
    assistants: fakeAssistants({ codex: createCodex(codex), secrets }),
    sandbox,
    options: { backend: 'codex' },
  });
  const attachments = [];
  for (const bytes of [png(1), png(2)])
    attachments.push({ digest: (await running.service.upload(bytes)).digest, name: 'a' });
  const { task_id: id } = await running.service.create({ description: 'look', attachments });
  await running.service.execute({ task: id, role: 'engineer', options: {} });

  const view = await untilStatus(running, id, 'complete', 'failed');

  expect(view).toMatchObject({ status: 'complete', result: 'I see it.' });
  const asked = JSON.stringify(provider.requests[0]?.body);
  expect(asked.match(/data:image\/png;base64,/g)).toHaveLength(2);
});
