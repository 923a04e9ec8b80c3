import { expect } from 'vitest';
import { openProject } from '../support/cli.ts';
import { startModelServer } from '../support/model-server.ts';
import { noSandbox, testUnless } from '../support/needs.ts';

const finish = { id: 'c1', name: 'finish', arguments: '{"status":"done","summary":"written"}' };

/** As ollama and LM Studio: a list of models (null: no answer), and chat completions. */
const startLocal = async (models: readonly string[] | null) => {
  const served = { models };
  const server = await startModelServer(({ path }) => {
    if (!path.endsWith('/models')) return { kind: 'answer', text: '', calls: [finish] };
    if (served.models === null) return { kind: 'silence' };
    return { kind: 'status', status: 200, body: { data: served.models.map((id) => ({ id })) } };
  });
  return { ...server, served, host: new URL(server.origin).host };
};
/** Nobody is logged in there, and no other local server of this machine answers. */
const alone = { PATH: '/usr/bin:/bin' };
const nobody = '127.0.0.1:9';
const lmstudio = (baseURL: string) => ({ providers: { lmstudio: { base_url: baseURL } } });
const noLmStudio = lmstudio(`http://${nobody}/v1`);

testUnless(noSandbox)(
  'without a key and a login, a task is done by the first model of a local ollama',
  async () => {
    const ollama = await startLocal(['nomic-embed-text', 'qwen3:8b', 'llama4']);
    const project = openProject(noLmStudio);
    const env = { ...alone, OLLAMA_HOST: ollama.host };

    const doctor = await project.agentWith(env, 'doctor');
    const asked = ollama.requests.length;
    const done = await project.agentWith(env, 'engineer', 'Say hello');
    const after = await project.agentWith(env, 'doctor');

    expect(doctor.out).toContain(
      `ollama/qwen3:8b at ${ollama.host}; the first model of a server on this machine that answers: no key is set and no coding assistant is logged in`,
    );
    expect(asked).toBe(1);
    expect(done.code, done.err).toBe(0);
    expect(ollama.requests.map(({ body }) => body['model'])).toContain('qwen3:8b');
    expect(after.out).not.toMatch(/provider_model/);
  },
);

testUnless(noSandbox)(
  'an ollama that starts after the server is found at the next run',
  async () => {
    const project = openProject(noLmStudio);
    const ollama = await startLocal(null);
    const env = { ...alone, OLLAMA_HOST: ollama.host };

    const none = await project.agentWith(env, 'server', 'start');
    ollama.served.models = ['qwen3:8b'];
    const done = await project.agentWith(env, 'engineer', 'Say hello');

    expect(none.code, none.err).toBe(0);
    expect(done.code, done.err).toBe(0);
    expect(ollama.requests.at(-1)?.body['model']).toBe('qwen3:8b');
  },
);

testUnless(noSandbox)('a silent ollama is passed by, and LM Studio is asked', async () => {
  const [ollama, studio] = [await startLocal(null), await startLocal(['gemma'])];
  const project = openProject(lmstudio(studio.baseURL));

  const { out } = await project.agentWith({ ...alone, OLLAMA_HOST: ollama.host }, 'doctor');

  expect(out).toContain(`lmstudio/gemma at ${studio.host}`);
});

testUnless(noSandbox)('with a key, and by agent list, no local server is asked', async () => {
  const ollama = await startLocal(['qwen3:8b']);
  const project = openProject(noLmStudio);
  const env = { ...alone, OLLAMA_HOST: ollama.host };

  await project.agentWith(env, 'list');
  const keyed = await project.agentWith({ ...env, ANTHROPIC_API_KEY: 'k' }, 'doctor');
  await project.agentWith({ ...env, ANTHROPIC_API_KEY: 'k' }, 'server', 'start');

  expect(keyed.out).toContain('anthropic/claude-sonnet-4-5');
  expect(ollama.requests).toEqual([]);
});
