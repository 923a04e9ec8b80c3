import { symlinkSync } from 'node:fs';
import { delimiter, join, relative } from 'node:path';
import { expect, test, vi } from 'vitest';
import { createCodex } from '../../../src/actors/assistants/codex.ts';
import { selectBackend } from '../../../src/actors/engine/attempts/select-assistant.ts';
import { childEnvironment } from '../../../src/actors/process/run-command.ts';
import { fakeAssistants, fakeProgram, runsIn } from '../../support/assistants.ts';
import { finish, type Setting, startSystem, untilStatus } from '../../support/running.ts';

/** The fakes, of which these say that they are logged in. */
const withLogin = (names: string, more = {}) =>
  fakeAssistants({
    environment: { ...childEnvironment(process.env), FAKE_LOGGED_IN: names },
    ...more,
  });

const begin = async (setting: Setting, options = {}) => {
  const running = await startSystem({
    ...setting,
    options: { backend: 'auto', ...setting.options },
  });
  const { task_id: id } = await running.service.create({ description: 'play: well' });
  const run = () => running.service.execute({ task: id, role: 'engineer', options });
  return { running, id, run };
};
const endOf = async (setting: Setting, options = {}) => {
  const { running, id, run } = await begin(setting, options);
  await run();
  const { status, result, error, usage } = await untilStatus(running, id, 'complete', 'failed');
  const names = runsIn(running.root).map(({ argv }) => (argv[0] === 'exec' ? 'codex' : 'claude'));
  return { status, result, error, usage, names };
};

test.each<[string, Setting, object, string]>([
  [
    'our own loop when there is a key',
    { turns: [finish('ours')], assistants: withLogin('codex') },
    {},
    '',
  ],
  [
    'codex when there is none and it is logged in',
    { model: null, assistants: withLogin('codex,claude') },
    {},
    'codex',
  ],
  ['claude when only that is', { model: null, assistants: withLogin('claude') }, {}, 'claude'],
  [
    'whom the role names, before whom the service names',
    { assistants: withLogin(''), role: { backend: 'claude' }, options: { backend: 'codex' } },
    {},
    'claude',
  ],
  [
    'our own loop when the role names it',
    {
      turns: [finish('ours')],
      assistants: withLogin(''),
      role: { backend: 'builtin' },
      options: { backend: 'codex' },
    },
    {},
    '',
  ],
  [
    'the scripted model when the run names it',
    { turns: [finish('ours')], assistants: withLogin(''), options: { backend: 'codex' } },
    { model: 'scripted' },
    '',
  ],
  [
    'the scripted model when the role is to play it',
    {
      turns: [finish('ours')],
      assistants: withLogin(''),
      role: { backend: 'scripted' },
      options: { backend: 'codex' },
    },
    {},
    '',
  ],
])('the work is done by %s', async (_, setting, options, expected) => {
  const { status, result, names } = await endOf(setting, options);

  expect({ status, by: names.join() }).toEqual({ status: 'complete', by: expected });
  expect(result).toBe(expected === '' ? 'ours' : 'made');
});

test('a key of codex counts as a login, of which codex does not speak', async () => {
  const assistants = withLogin('', { secrets: { CODEX_API_KEY: 'sk-1' } });

  expect(await endOf({ model: null, assistants })).toMatchObject({
    status: 'complete',
    names: ['codex'],
  });
});

test('without a key and a login a run is refused, with what to do', async () => {
  const { run } = await begin({ model: null, assistants: withLogin('') });

  await expect(run()).rejects.toMatchObject({
    code: 'credential_missing',
    message: 'OPENAI_API_KEY is not set: set it',
  });
});

test('an assistant that is named and not there refuses the run by name', async () => {
  const assistants = fakeAssistants({ codex: createCodex({ path: '/nowhere/codex' }) });
  const { running, id, run } = await begin({ assistants, options: { backend: 'codex' } });

  await expect(run()).rejects.toMatchObject({
    code: 'credential_missing',
    facts: { variable: 'OPENAI_API_KEY', problem: '/nowhere/codex is not a program' },
  });
  expect((await running.service.explain(id)).guards).toContainEqual({
    guard: 'modelCanBeCalled',
    value: false,
    inputs: { missing_credential: 'OPENAI_API_KEY', problem: '/nowhere/codex is not a program' },
  });
});

test('a program of the project is not taken for an assistant, however PATH is set', async () => {
  const environment: Record<string, string> = { ...childEnvironment(process.env) };
  const assistants = fakeAssistants({ environment, codex: createCodex() });
  const { running, run } = await begin({ assistants, options: { backend: 'codex' } });
  symlinkSync(fakeProgram('codex'), join(running.root, 'codex'));
  environment['PATH'] = [relative(process.cwd(), running.root), '/usr/bin', '/bin'].join(delimiter);

  await expect(run()).rejects.toMatchObject({ facts: { problem: 'codex is not on PATH' } });
});

test('a role that is to play the scripted model asks for it by name', async () => {
  const running = await startSystem({ role: { backend: 'scripted', model: 'gpt-x' } });
  const asked: string[] = [];
  const selectModel = (requested: string) => {
    asked.push(requested);
    return null;
  };

  selectBackend(
    { settings: running.system.settings(), selectModel, assistants: fakeAssistants() },
    {},
    'engineer',
  );

  expect(asked).toEqual(['scripted']);
});

test('a login while the server runs is found at the next run, and looked for at most every 10 s', async () => {
  let now = 0;
  const environment: Record<string, string> = {
    ...childEnvironment(process.env),
    FAKE_LOGGED_IN: '',
  };
  const { running, id, run } = await begin({
    model: null,
    assistants: fakeAssistants({ environment, now: () => now }),
  });
  await expect(run()).rejects.toMatchObject({ code: 'credential_missing' });

  environment['FAKE_LOGGED_IN'] = 'claude';
  now = 9_999;
  await expect(run()).rejects.toMatchObject({ code: 'credential_missing' });
  now = 10_000;
  await run();

  expect(await untilStatus(running, id, 'complete', 'failed')).toMatchObject({
    status: 'complete',
    result: 'made',
  });
});

test('no assistant is chosen by itself for a role whose calls a person must allow', async () => {
  const { run } = await begin({
    model: null,
    assistants: withLogin('codex'),
    role: { approvals: ['bash'] },
  });

  await expect(run()).rejects.toMatchObject({ code: 'credential_missing' });
});

test('a limit of cost is kept by claude, which says its cost, and by codex only with a price', async () => {
  const price = { input: 1_000, cachedInput: 0, output: 0 };
  const codex = (prices: object, model?: string) =>
    endOf(
      { assistants: withLogin(''), options: { backend: 'codex', maxCostUsd: 5, ...prices } },
      { model },
    );

  await expect(codex({})).rejects.toMatchObject({ code: 'invalid_params' });
  const found = await begin({
    model: null,
    assistants: withLogin('codex'),
    options: { maxCostUsd: 5 },
  });
  await expect(found.run()).rejects.toMatchObject({ code: 'invalid_params' });
  expect((await codex({ prices: { 'gpt-x': price } }, 'gpt-x')).usage.cost_usd).toBeCloseTo(0.27);
  const claude = await endOf({
    assistants: withLogin(''),
    options: { backend: 'claude', maxCostUsd: 5 },
  });
  expect(claude).toMatchObject({ status: 'complete', usage: { cost_usd: 0.03 } });
});

test('an attempt keeps its backend, whatever is configured meanwhile', async () => {
  const { running, id, run } = await begin({
    assistants: withLogin(''),
    options: { backend: 'claude' },
  });
  await run();
  await vi.waitFor(() => expect(running.store.actor(`${id}#1`)).not.toBeNull());
  running.system.reconfigure({ ...running.system.settings(), backend: 'builtin' });

  expect(await untilStatus(running, id, 'complete', 'failed')).toMatchObject({ result: 'made' });
});
