import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createBubblewrap } from '../../../src/actors/sandbox/bubblewrap.ts';
import { notes, resultsOf, stdioServer } from '../../support/mcp.ts';
import { finish, startSystem, type Turn, untilStatus } from '../../support/running.ts';

const sandbox = createBubblewrap({ readPaths: [], network: false });
const { ok, detail } = sandbox.check();
const reason = ok ? '' : ` (skipped: ${detail})`;

const call = (tool: string, args: object = {}): Turn => ({ calls: [{ tool, arguments: args }] });
const role = { mcp: ['notes'] };

const processesOf = (word: string): readonly string[] =>
  readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(word);
    } catch {
      return false;
    }
  });

test.skipIf(!ok)(`an agent calls the tools of a server in the sandbox${reason}`, async () => {
  const outside = mkdtempSync('/var/tmp/agent-test-');
  onTestFinished(() => rmSync(outside, { recursive: true, force: true }));
  const env = { SEEN_OUTSIDE: outside, NOTES_KEY: 'key ${NOTES_KEY}' };
  const running = await startSystem({
    turns: [
      call('mcp__notes__add', { text: 'one' }),
      call('mcp__notes__add', { text: 'two' }),
      call('mcp__notes__look'),
      call('mcp__notes__refuse'),
      finish(),
    ],
    role,
    sandbox,
    options: { mcpServers: [stdioServer('notes', notes(), { env })] },
    mcp: { variables: { NOTES_KEY: 'n-1', OTHER_KEY: 'n-2' }, pinsFile: null, version: '0' },
  });
  writeFileSync(join(running.root, 'a.txt'), '');
  const { task_id } = await running.service.create({ description: 'Take notes' });

  await running.service.execute({ task: task_id, role: 'engineer', options: {} });
  await untilStatus(running, task_id, 'complete', 'failed');

  const [one, two, looked, refused] = await resultsOf(running, task_id);
  const seen = JSON.parse(looked?.output ?? '{}');
  expect(one).toEqual({ tool: 'mcp__notes__add', ok: true, output: '1: one' });
  expect(two?.output).toBe('2: one, two');
  expect(seen).toMatchObject({ home: false, writes: false, cwd: expect.arrayContaining(['a.txt']) });
  expect(seen.env).toMatchObject({ NOTES_KEY: 'key n-1' });
  expect(JSON.stringify(seen.env)).not.toContain('n-2');
  expect(refused).toMatchObject({ ok: false, output: expect.stringContaining('not today') });
  expect(existsSync(join(running.root, 'written-by-server'))).toBe(false);
});
