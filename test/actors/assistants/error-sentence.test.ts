import { expect, test } from 'vitest';
import { errorSentence } from '../../../src/actors/assistants/error-sentence.ts';

test.each([
  [
    'codex, an account without the model',
    '{"type":"error","status":400,"error":{"type":"invalid_request_error","message":"The \'gpt-5\' model is not supported."}}',
    "The 'gpt-5' model is not supported.",
  ],
  [
    'codex, a wrong key',
    'unexpected status 401 Unauthorized: {"error":{"message":"Incorrect API key provided: sk-x.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}, url: https://api.example.com/v1/responses',
    'unexpected status 401 Unauthorized: Incorrect API key provided: sk-x., url: https://api.example.com/v1/responses',
  ],
  ['colours', '\u001b[1;31mError:\u001b[0m no such model', 'Error: no such model'],
  ['colours in JSON', '{"detail":"\\u001b[31mno such model\\u001b[0m"}', 'no such model'],
  ['codex, a detail', '{"detail":"Unsupported parameter"}', 'Unsupported parameter'],
  [
    'claude',
    'API Error: 529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}',
    'API Error: 529 Overloaded',
  ],
  [
    'gemini, JSON in JSON in a list',
    `[API Error: ${JSON.stringify([{ error: { message: JSON.stringify({ error: { code: 429, message: 'Quota is\n used up', status: 'RESOURCE_EXHAUSTED' } }), code: 429 } }])}]`,
    '[API Error: Quota is used up]',
  ],
  ['an error that is a text', '{"error":"no such model"}', 'no such model'],
  [
    'only a code',
    'failed: {"code":-32000,"data":{}}',
    'failed: an error without a message (-32000)',
  ],
  ['nothing in it', '{}', 'an error without a message'],
  ['an empty list', '[]', 'an error without a message'],
  ['plain text', 'the model is away', 'the model is away'],
  ['text with brackets', 'see [1] and {name}', 'see [1] and {name}'],
  ['broken JSON', 'Bad: {"message": "cut', 'Bad: an error without a message'],
])('says an error as a sentence: %s', (_, message, sentence) => {
  expect(errorSentence(message)).toBe(sentence);
});

test('control characters and marks of direction do not reach people', () => {
  const message = JSON.stringify({
    error: { message: 'a\u001b[31mb\u0000c\u202ed\u2066e\u2028f\r\ng' },
  });

  expect(errorSentence(message)).toBe('ab c d e f g');
});

const nested = (depth: number): string => {
  let message = 'deep';
  for (let at = 0; at < depth; at += 1) message = JSON.stringify({ message });
  return message;
};

test.each([
  ['deep objects', `${'{"error":'.repeat(5_000)}"x"${'}'.repeat(5_000)}`],
  ['deep lists', `{"message":${'['.repeat(1_000_000)}`],
  ['JSON in JSON', nested(12)],
  ['a huge message', JSON.stringify({ message: 'x'.repeat(20_000_000) })],
  ['a huge text', 'y '.repeat(10_000_000)],
  ['many brackets', '{'.repeat(5_000_000)],
  ['many blanks after a bracket', `{${' '.repeat(50_000)}`.repeat(100)],
])('a hostile error is short, quickly: %s', (_, message) => {
  const before = performance.now();
  const sentence = errorSentence(message);

  expect(sentence.length).toBeLessThanOrEqual(500);
  expect(sentence).not.toBe('');
  expect(performance.now() - before).toBeLessThan(10_000);
});
