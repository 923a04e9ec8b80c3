import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { writeFileAtomically } from '../../../src/actors/files/atomic-write.ts';
import { temporaryFolder } from '../../support/temporary.ts';

test('a file that is written repeatedly is whole at every moment, also when its writer is killed', {
  tags: ['slow'],
}, async () => {
  const folder = temporaryFolder();
  const file = join(folder, '00-metadata.json');
  const module = new URL('../../../build/actors/files/atomic-write.js', import.meta.url);
  const script = `
    const { writeFileAtomically } = await import(${JSON.stringify(module.href)});
    for (let n = 0; ; n += 1)
      await writeFileAtomically(${JSON.stringify(file)}, JSON.stringify({ n, text: String(n).repeat(50_000) }));
  `;
  const read = (): { n: number; text: string } => JSON.parse(readFileSync(file, 'utf8'));
  await writeFileAtomically(file, JSON.stringify({ n: -1, text: '-1'.repeat(50_000) }));

  for (let kill = 0; kill < 5; kill += 1) {
    const writer = spawn(process.execPath, ['--input-type=module', '--eval', script], {
      stdio: 'ignore',
    });
    const ended = once(writer, 'exit');
    const before = read().n;
    await vi.waitFor(
      () => {
        const { n, text } = read();
        expect(text).toBe(String(n).repeat(50_000));
        expect(n === before || n < kill + 2).toBe(false);
      },
      { interval: 1 },
    );
    writer.kill('SIGKILL');
    await ended;
    const { n, text } = read();
    expect(text).toBe(String(n).repeat(50_000));
  }
  expect(readdirSync(folder)).toContain('00-metadata.json');
});
