import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseScript } from '../../src/actors/model/script.ts';
import { createScriptedModel } from '../../src/actors/model/scripted.ts';
import { play } from '../model-server/play.mjs';
import { createModelServer } from '../model-server/server.mjs';
import { openProject } from '../support/cli.ts';
import { gitIn } from '../support/git.ts';
import type { AtEnd } from '../support/temporary.ts';

const finish = (summary: string) => ({
  say: '',
  calls: [{ tool: 'finish', arguments: { status: 'done', summary } }],
});
const call = (tool: string, args: object, say = '') => ({
  say,
  calls: [{ tool, arguments: args }],
});

const scripts = [
  {
    role: 'product-manager',
    turns: [call('ask', { question: 'Red or blue?' }), finish('as you said')],
  },
  { role: 'reviewer', turns: [call('bash', { command: 'seq 1 40' }), finish('looked')] },
  { role: 'tester', turns: [call('bash', { command: 'exec sleep 600' })] },
  {
    role: 'engineer',
    turns: [
      call('write', { path: 'src/a.js', content: 'export const a = 1;\nexport const b = 2;\n' }),
      finish('wrote src/a.js'),
    ],
  },
  { turns: [finish('done')] },
];

/**
 * A git repository, whose agents a script plays over HTTP. `first`: scripts that count before the
 * others.
 */
export const openPageProject = async (atEnd: AtEnd, first: readonly object[] = []) => {
  const script = parseScript({ scripts: [...first, ...scripts] });
  const provider = await createModelServer({ answer: play(createScriptedModel(script)) });
  atEnd(provider.close);
  const project = openProject(
    {
      api: { backend: 'builtin', base_url: provider.baseURL, provider_model: 'scripted-over-http' },
      workspace: { mode: 'worktree' },
      roles: { reviewer: { require_approval: ['bash'] } },
    },
    { atEnd },
  );
  const env = { OPENAI_API_KEY: 'no-key-a-script-answers' };
  mkdirSync(join(project.root, 'src'));
  writeFileSync(join(project.root, 'src', 'main.js'), 'export {};\n');
  gitIn(project.root, 'init', '--quiet', '--initial-branch=main');
  gitIn(project.root, 'config', 'user.name', 'Amy');
  gitIn(project.root, 'config', 'user.email', 'amy@localhost');
  gitIn(project.root, 'add', '--all');
  gitIn(project.root, 'commit', '--quiet', '-m', 'start');
  const agent = (...args: string[]) => project.agentWith(env, ...args);
  const show = async (id: string) => JSON.parse((await agent('show', id, '--json')).out);
  return {
    ...project,
    agent,
    show,
    create: async (title: string, ...more: string[]) =>
      (await agent('create', title, ...more)).out.trim(),
    /** The one-time address of the page. */
    address: async (...more: string[]) =>
      (await agent('open', '--direct', '--print', ...more)).out.trim(),
  };
};
