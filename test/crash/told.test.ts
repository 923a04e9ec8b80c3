import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { openProject } from '../support/cli.ts';
import type { Answer } from '../support/model-server.ts';
import { startModelServer } from '../support/model-server.ts';
import { finished } from '../support/provider-limits.ts';

const key = { OPENAI_API_KEY: 'sk-test-0123456789' };
const command = 'until [ -e go ]; do sleep 0.05; done';
const waits: Answer = {
  kind: 'answer',
  calls: [{ name: 'bash', arguments: JSON.stringify({ command }) }],
};
const said = 'use tabs';

test('words of an A2A client to an agent at work survive kill -9, and are said once', {
  tags: ['slow'],
}, async () => {
  const asked: string[] = [];
  const provider = await startModelServer(({ body }) => {
    asked.push(JSON.stringify(body));
    return asked.length === 1 ? waits : finished;
  });
  const config = {
    server: { port: 0 },
    agent: { on_interrupted: 'repeat' },
    api: { base_url: provider.baseURL, provider_model: 'm' },
  };
  const project = openProject(config, { ownServer: true });
  const agent = async (...words: string[]): Promise<string> => {
    const { code, out, err } = await project.agentWith(key, ...words);
    expect(code, err).toBe(0);
    return out.trim();
  };
  const id = await agent('create', 'x', '--role', 'engineer');
  await agent('engineer', id, '--async');
  await vi.waitFor(() => expect(asked).toHaveLength(1));

  const response = await fetch(`${project.serverFile()?.url}/a2a/rest/message:send`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${await agent('token')}`,
      'content-type': 'application/a2a+json',
    },
    body: JSON.stringify({
      message: { messageId: 'm', role: 'ROLE_USER', taskId: id, parts: [{ text: said }] },
      configuration: { returnImmediately: true },
    }),
  });
  expect(response.status, await response.text()).toBe(200);
  await project.stopServer('SIGKILL');
  writeFileSync(join(project.root, 'go'), '');
  await agent('server', 'start');
  await agent('wait', id, '--timeout', '30');

  expect(asked.map((body) => body.split(said).length - 1)).toEqual([0, 1]);
  expect(await agent('logs', id)).toContain(`a person says: ${said}`);
});
