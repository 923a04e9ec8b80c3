import { expect, test } from 'vitest';
import { writeWorkText } from '../../../../src/actors/engine/publishing/describe-work.ts';

const values = {
  title: 'Add a page',
  ...{ task_id: 'bd-a1', attempt: '2', role: 'engineer' },
  summary: 'It is there. {{cost}}',
  changes: '1 file, +1 −0',
  verified: '`npm test`, `npm run lint`',
  cost: '$0.42',
  issue: '#7',
  link: 'https://tasks.example/bd-a1',
};

test('the text says what changed, how it was verified, what it cost, and what it closes', () => {
  expect(writeWorkText(null, values)).toEqual({
    title: 'Add a page',
    body: `It is there. {{cost}}

- Task bd-a1, attempt 2 by the engineer
- 1 file, +1 −0
- Verified: \`npm test\`, \`npm run lint\`
- Cost: $0.42

[How it was made](https://tasks.example/bd-a1)

Closes #7`,
  });
});

test('a line whose values are all unknown is left out', () => {
  const none = { ...values, verified: '', cost: '', issue: '', link: '' };

  expect(writeWorkText(null, none).body).toBe(
    'It is there. {{cost}}\n\n- Task bd-a1, attempt 2 by the engineer\n- 1 file, +1 −0',
  );
});

test('a template of the project says the title and the text; a name that is none stays', () => {
  const template = 'title: [{{task_id}}] {{title}}\n\n## What\n{{ summary }}\n\n$& {{ticket}}\n';

  expect(writeWorkText(template, values)).toEqual({
    title: '[bd-a1] Add a page',
    body: '## What\nIt is there. {{cost}}\n\n$& {{ticket}}',
  });
});

test('a long summary leaves room for what follows it', () => {
  const { body } = writeWorkText(null, { ...values, summary: 'x'.repeat(15_000) });

  expect(body.endsWith('Closes #7')).toBe(true);
});
