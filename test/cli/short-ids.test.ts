import { expect, test } from 'vitest';
import { openProject } from '../support/cli.ts';

test.each(['with', 'without'])(
  'an id is shortened to a unique beginning or end, %s a server',
  async (how) => {
    const { agent } = openProject();
    const created = async (...words: string[]) => (await agent('create', ...words)).out.trim();
    const one = await created('one');
    const two = await created('two', '--deps', one.slice(3));
    if (how === 'with') await agent('server', 'start');

    const shown = [await agent('show', one.slice(3)), await agent('show', one.slice(-3))];
    const tree = await agent('dep', 'tree', two.slice(3), '--json');
    const ambiguous = await agent('show', 'bd');
    const unknown = await agent('show', 'nothing');
    const closed = await agent('close', one.slice(3));

    for (const { code, out } of shown) {
      expect(code).toBe(0);
      expect(out).toContain(one);
    }
    expect(JSON.parse(tree.out)).toMatchObject({ task_id: two, depends_on: [{ task_id: one }] });
    expect(ambiguous).toMatchObject({ code: 2, out: '' });
    for (const line of [`${one}  one`, `${two}  two`]) expect(ambiguous.err).toContain(line);
    expect(unknown).toMatchObject({
      code: 3,
      err: expect.stringContaining('task nothing does not exist'),
    });
    expect(closed).toMatchObject({ code: 0, out: `${one} complete\n` });
  },
);

test.each(['with', 'without'])(
  'a wrong id is answered with the one that was probably meant, %s a server',
  async (how) => {
    const { agent } = openProject();
    const id = (await agent('create', 'one')).out.trim();
    await agent('create', 'two');
    if (how === 'with') await agent('server', 'start');
    const wrong = `${id.slice(0, -1)}${id.endsWith('z') ? 'y' : 'z'}`;

    const shown = await agent('show', wrong);
    const closed = await agent('close', wrong, '--json');
    const other = await agent('show', 'qqqqqq');

    expect(shown.code).toBe(3);
    expect(shown.err).toBe(`agent: task ${wrong} does not exist; did you mean ${id}?\n`);
    expect(JSON.parse(closed.out)).toMatchObject({
      error: { code: 'task_not_found', task_id: wrong, did_you_mean: id },
    });
    expect(other.err).toContain("'agent list --all' shows the tasks");
  },
);
