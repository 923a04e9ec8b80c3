import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import { openProject } from '../support/cli.ts';
import type { Answer } from '../support/model-server.ts';
import { startModelServer } from '../support/model-server.ts';
import { noSandbox, testUnless } from '../support/needs.ts';
import { finished } from '../support/provider-limits.ts';

const key = { OPENAI_API_KEY: 'sk-test-0123456789' };
const command =
  'if [ -e made ]; then exit 0; fi; mkdir -p .vscode lib/.git; echo evil > .vscode/tasks.json; touch made; sleep 600';
const makes: Answer = {
  kind: 'answer',
  calls: [{ name: 'bash', arguments: JSON.stringify({ command, timeout_seconds: 600 }) }],
};

testUnless(noSandbox)(
  'files that a command made under protected names are moved away when the server is started again after kill -9',
  { tags: ['slow'] },
  async () => {
    let calls = 0;
    const provider = await startModelServer(() => {
      calls += 1;
      return calls === 1 ? makes : finished;
    });
    const config = {
      server: { port: 0 },
      sandbox: { mode: 'required' },
      workspace: { mode: 'shared' },
      agent: { on_interrupted: 'repeat' },
      api: { base_url: provider.baseURL, provider_model: 'm' },
    };
    const project = openProject(config, { ownServer: true });
    const inRoot = (path: string): string => join(project.root, path);
    const agent = async (...words: string[]): Promise<string> => {
      const { code, out, err } = await project.agentWith(key, ...words);
      expect(code, err).toBe(0);
      return out.trim();
    };
    writeFileSync(inRoot('.envrc'), 'mine');
    const id = await agent('create', 'x', '--role', 'engineer');
    await agent('engineer', id, '--async');
    await vi.waitFor(() => expect(existsSync(inRoot('made'))).toBe(true));
    await project.stopServer('SIGKILL');
    expect(existsSync(inRoot('.vscode/tasks.json'))).toBe(true);

    await agent('server', 'start');

    expect(existsSync(inRoot('.vscode'))).toBe(false);
    expect(existsSync(inRoot('lib/.git'))).toBe(false);
    expect(readFileSync(inRoot('.envrc'), 'utf8')).toBe('mine');
    expect(existsSync(inRoot('.git/HEAD'))).toBe(true);
    const quarantine = join(project.stateDir, 'quarantine');
    const [folder = ''] = readdirSync(quarantine);
    const { moved } = JSON.parse(readFileSync(join(quarantine, folder, 'index.json'), 'utf8'));
    expect(Object.values(moved).toSorted()).toEqual(['.vscode', 'lib/.git']);
    const log = readFileSync(join(project.stateDir, 'server.log'), 'utf8');
    expect(log).toContain('an interrupted command made what other programs obey');
    await agent('wait', id, '--timeout', '30');
    expect(JSON.parse(await agent('show', id, '--json')).status).toBe('complete');
    expect(existsSync(inRoot('.vscode'))).toBe(false);
    expect(readdirSync(join(project.stateDir, 'commands'))).toEqual([]);
  },
);
