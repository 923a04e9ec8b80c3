import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { Recording } from '../../../src/actors/journal/replay/recording.ts';
import { fittingPatch, recordingIn } from '../../../src/cli/recording/recording-document.ts';
import { openPageProject } from '../../page/project.ts';

test('whole files are taken of a patch that is too large, and the others counted', () => {
  const file = (name: string, size: number) =>
    `diff --git a/${name} b/${name}\n+++ b/${name}\n@@ -0,0 +1 @@\n+${'x'.repeat(size)}\n`;
  const [one, large, three] = [file('one', 100), file('large', 5_000), file('three', 100)];

  expect(fittingPatch(one + large + three, 1_000)).toEqual({ patch: one, files_left_out: 2 });
  expect(fittingPatch(one + three, 1_000)).toEqual({ patch: one + three, files_left_out: 0 });
  expect(fittingPatch('', 1_000)).toEqual({ patch: '', files_left_out: 0 });
});

test('a secret that only the server knows is not in the changes of the file', {
  tags: ['slow'],
}, async () => {
  // The key that the project's server gets from its shell.
  const key = 'no-key-a-script-answers';
  const call = (tool: string, args: object) => ({ say: '', calls: [{ tool, arguments: args }] });
  const leaky = {
    role: 'architect',
    turns: [
      call('write', { path: 'key.txt', content: `${key}\n` }),
      call('finish', { status: 'done', summary: 'wrote it' }),
    ],
  };
  const project = await openPageProject(onTestFinished, [leaky]);
  const id = await project.create('Write the key');
  await project.agent('architect', id);
  const withoutKey = { OPENAI_API_KEY: undefined };

  const said = await project.agentWith(withoutKey, 'export', id, '-o', 'task.html');

  expect(said).toMatchObject({ code: 0 });
  const document = readFileSync(join(project.root, 'task.html'), 'utf8');
  const { changes } = JSON.parse(recordingIn(document) ?? '') as Recording;
  expect((await project.agentWith(withoutKey, 'diff', id)).out).toContain(key);
  expect(changes?.patch).toContain('+[secret]');
  expect(document).not.toContain(key);
  expect(await project.agentWith(withoutKey, 'replay', '--verify', 'task.html')).toMatchObject({
    code: 0,
  });
});
