import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { openProject } from '../support/cli.ts';
import { temporaryFolder } from '../support/temporary.ts';

test("the user's files are merged: every project, this project, the named file, environment", async () => {
  const { agentWith, configFile } = openProject();
  const home = temporaryFolder();
  const agent = (...words: string[]) => agentWith({ XDG_CONFIG_HOME: home }, ...words);
  const own = (await agent('config', 'path')).out.trim();
  const everywhere = join(home, 'agent-task-server', 'config.json');
  mkdirSync(dirname(own), { recursive: true });
  writeFileSync(everywhere, JSON.stringify({ agent: { max_turns: 7, max_retries: 1 } }));
  writeFileSync(own, JSON.stringify({ agent: { max_turns: 8 }, server: { port: 1 } }));

  const rows = JSON.parse((await agent('config', '--json')).out);
  const of = (key: string) => rows.find((row: { key: string }) => row.key === key);

  expect(own).toMatch(/agent-task-server\/projects\/[^/]+-[0-9a-f]{12}\.json$/);
  expect(of('agent.max_retries')).toMatchObject({ value: 1, origin: everywhere });
  expect(of('agent.max_turns')).toMatchObject({ value: 8, origin: own });
  expect(of('server.port')).toMatchObject({ value: 0, origin: configFile });
  expect(of('api.max_tokens')).toMatchObject({ origin: 'default' });
  expect((await agent('config', 'get', 'agent.max_turns')).out).toBe('8\n');
  expect((await agent('config', 'set', 'agent.max_turns', '9')).code).toBe(0);
  expect((await agent('config', 'get', 'agent.max_turns')).out).toBe('9\n');
  expect(await agent('config', 'set', 'agent.max_turns', 'many')).toMatchObject({ code: 78 });
  expect(await agent('config', 'set', 'agent.max_trns', '9')).toMatchObject({
    code: 2,
    err: expect.stringContaining('did you mean agent.max_turns?'),
  });
  expect((await agent('config', 'get', 'agent.max_turns')).out).toBe('9\n');
});
