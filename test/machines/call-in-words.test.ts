import { expect, test } from 'vitest';
import { callInWords } from '../../src/machines/agent/call-in-words.ts';

test('a call is its tool and its first argument that is text, uncut', () => {
  const said = (args: string) => callInWords({ tool: 'bash', arguments: args });

  expect(said('{"timeout": 5, "command": "npm test"}')).toBe('bash npm test');
  expect(said(JSON.stringify({ command: 'x'.repeat(1_000) }))).toBe(`bash ${'x'.repeat(1_000)}`);
  expect(said('{"command": "cut')).toBe('bash');
  expect(said('null')).toBe('bash');
  expect(said('{}')).toBe('bash');
});
