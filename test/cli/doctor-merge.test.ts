import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openProject } from '../support/cli.ts';

const files: readonly (readonly [string, string, string])[] = [
  ['package.json', '{"scripts":{"test":"node --test"}}', 'npm test'],
  ['Makefile', 'all:\n\ntest: all\n\t./run\n', 'make test'],
  ['pyproject.toml', '[tool.pytest.ini_options]\n', 'python3 -m pytest'],
  ['package.json', '{"scripts":{"test":"echo \\"Error: no test specified\\""}}', '<your tests>'],
  ['package.json', 'not JSON', '<your tests>'],
];

test('doctor proposes the test command that it sees, and names the one that is set', async () => {
  const { agent, root } = openProject();
  const detail = async (): Promise<{ status: string; detail: string }> => {
    const { checks } = JSON.parse((await agent('doctor', '--json')).out);
    return checks.find(({ check }: { check: string }) => check === 'merge');
  };
  for (const [name, text, command] of files) {
    writeFileSync(join(root, name), text);
    expect(await detail()).toMatchObject({
      status: 'note',
      detail: expect.stringMatching(/to test all of it: /),
    });
    expect((await detail()).detail).toContain(
      `agent config set merge.verify '${JSON.stringify([command])}'`,
    );
    rmSync(join(root, name));
  }
  await agent('config', 'set', 'merge.verify', '["make check"]');

  expect(await detail()).toMatchObject({ status: 'ok', detail: 'tested with make check' });
});
