import { createHash } from 'node:crypto';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import Database from 'libsql';
import { expect, test, vi } from 'vitest';
import { fakeAssistants, runsIn } from '../../support/assistants.ts';
import { type Running, type Setting, startSystem, untilStatus } from '../../support/running.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const begin = async (play: string, options: Setting['options'] = {}) => {
  const setting: Setting = {
    assistants: fakeAssistants(),
    options: { backend: 'codex', ...options },
  };
  const first = await startSystem(setting);
  const { task_id: id } = await first.service.create({ description: `play: ${play}` });
  await first.service.execute({ task: id, role: 'engineer', options: {} });
  await vi.waitFor(() => expect(runsIn(first.root)).toHaveLength(1));
  return { first, id, setting };
};

/** Waits until its session is durable. */
const untilKnown = ({ store }: Running, id: string) =>
  vi.waitFor(() =>
    expect(store.steps(id, 1).find(({ key }) => key === 'run:0')?.intent).toContain('session-1'),
  );

/** Copies the files as they are now, like a power cut. */
const crash = async (running: Running, setting: Setting): Promise<Setting> => {
  const [root, stateDir] = [temporaryFolder(), temporaryFolder()];
  cpSync(running.root, root, { recursive: true });
  cpSync(running.stateDir, stateDir, { recursive: true });
  await running.stop();
  return { ...setting, root, stateDir };
};

const untilAsked = ({ service }: Running, id: string) =>
  vi.waitFor(async () => {
    const { awaiting } = await service.status(id);
    expect(awaiting).toBeDefined();
    return awaiting as NonNullable<typeof awaiting>;
  });

test.each([
  ['repeat', /go on with the task\.$/],
  ['the file is there already', /A person says: the file is there already$/],
])(
  'after a crash a person is asked; with %j the assistant resumes its session',
  async (text, prompt) => {
    const { first, id, setting } = await begin('hang');
    await untilKnown(first, id);
    const next = await startSystem(await crash(first, setting));

    const { question, input_id } = await untilAsked(next, id);
    expect(runsIn(next.root)).toHaveLength(1);
    await next.service.respond(id, 1, { type: 'respond', inputId: input_id, text, decision: null });
    const view = await untilStatus(next, id, 'complete', 'failed');
    const [, second] = runsIn(next.root);

    expect(question).toMatch(/stopped while codex was working.*session-1/);
    expect(view).toMatchObject({
      status: 'complete',
      attempt: 1,
      result: 'made',
      usage: { input_tokens: 300, turns: 3 },
    });
    expect(second?.argv.slice(-3)).toEqual(['resume', 'session-1', '-']);
    expect(second?.prompt).toMatch(/^You were stopped/);
    expect(second?.prompt).toMatch(prompt);
  },
);

test('with the policy repeat it resumes its session without a question', async () => {
  const { first, id, setting } = await begin('hang', { onInterrupted: 'repeat' });
  await untilKnown(first, id);
  const next = await startSystem(await crash(first, setting));

  expect(await untilStatus(next, id, 'complete', 'failed')).toMatchObject({
    status: 'complete',
    result: 'made',
  });
  expect(runsIn(next.root)[1]?.argv).toContain('session-1');
});

test('with the policy fail the attempt fails and names the assistant', async () => {
  const { first, id, setting } = await begin('hang', { onInterrupted: 'fail' });
  await untilKnown(first, id);
  const next = await startSystem(await crash(first, setting));

  expect((await untilStatus(next, id, 'failed')).error).toMatchObject({
    code: 'internal',
    facts: { interrupted: true, assistant: 'codex' },
  });
  expect(runsIn(next.root)).toHaveLength(1);
});

test('after an orderly stop nobody is asked', async () => {
  const { first, id, setting } = await begin('hang');
  await untilKnown(first, id);
  await first.stop();
  const next = await startSystem({ ...setting, root: first.root, stateDir: first.stateDir });

  expect(await untilStatus(next, id, 'complete', 'failed')).toMatchObject({
    status: 'complete',
    attempt: 1,
  });
  expect(runsIn(next.root)[1]?.argv).toContain('session-1');
});

test('a command that was stopped is not started again without a question, since it has no session', async () => {
  const setting: Setting = { assistants: fakeAssistants(), options: { backend: 'command' } };
  const first = await startSystem(setting);
  const { task_id: id } = await first.service.create({ description: 'play: hang' });
  await first.service.execute({ task: id, role: 'engineer', options: {} });
  await vi.waitFor(() => expect(runsIn(first.root)).toHaveLength(1));
  await first.stop();
  const next = await startSystem({ ...setting, root: first.root, stateDir: first.stateDir });

  expect((await untilAsked(next, id)).question).toMatch(/let it begin again/);
  expect(runsIn(next.root)).toHaveLength(1);
});

test('processes that an assistant of an earlier server left are ended before it resumes', async () => {
  const { first, id, setting } = await begin('hang', { onInterrupted: 'repeat' });
  await untilKnown(first, id);
  const image = await crash(first, setting);
  const project = createHash('sha256')
    .update(image.root ?? '')
    .digest('hex')
    .slice(0, 12);
  const env = { ATS_ATTEMPT: `${project}/${id}#1` };
  const left = execa('sleep', ['600'], { detached: true, reject: false, env });
  const next = await startSystem(image);

  expect(await untilStatus(next, id, 'complete', 'failed')).toMatchObject({ status: 'complete' });
  expect((await left).signal).toBe('SIGTERM');
  expect(runsIn(next.root)[1]?.env['ATS_ATTEMPT']).toBe(env.ATS_ATTEMPT);
});

test('a result that was durable before a crash is not requested again', async () => {
  const { first, id, setting } = await begin('hang', { onInterrupted: 'repeat' });
  await untilKnown(first, id);
  const image = await crash(first, setting);
  const spent = {
    modelCalls: 1,
    toolCalls: 0,
    inputTokens: 7,
    outputTokens: 1,
    cachedTokens: 0,
    costUsd: null,
  };
  const delegated = { kind: 'done', summary: 'it was done', artifacts: [], spent };
  const db = new Database(join(image.stateDir ?? '', 'journal.db'));
  db.prepare("update steps set result = ? where key = 'run:0'").run(JSON.stringify({ delegated }));
  db.close();
  const next = await startSystem(image);

  expect(await untilStatus(next, id, 'complete', 'failed')).toMatchObject({
    result: 'it was done',
    usage: { input_tokens: 7 },
  });
  expect(runsIn(next.root)).toHaveLength(1);
});
