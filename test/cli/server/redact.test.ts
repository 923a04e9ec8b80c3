import { expect, test } from 'vitest';
import { createRedactor } from '../../../src/cli/server/secrets/redact.ts';

const secret = 'pass"word\\1\n\\';
const json = (text: string, levels: number): string =>
  levels === 0 ? text : JSON.stringify({ text: json(text, levels - 1) });

test.each([0, 1, 2, 3])(
  'a secret with a quote and a backslash is removed from JSON %i deep',
  (n) => {
    const redact = createRedactor(() => [secret]);

    const safe = redact(json(`before ${secret} after`, n));

    expect(safe).toBe(json('before [secret] after', n));
  },
);

test('a text shorter than 8 characters is no secret', () => {
  expect(createRedactor(() => ['', 'root'])('the root folder')).toBe('the root folder');
});
