import { expect, test } from 'vitest';
import { openProject } from '../support/cli.ts';

/** `--json`: one JSON value on stdout, an object with `error` where a command is refused. */

test('stop prints one value with the end of the server', async () => {
  const { agent, serverFile } = openProject();

  const none = await agent('server', 'stop', '--json');
  await agent('server', 'start');
  const { pid } = serverFile();
  const stopped = await agent('server', 'stop', '--json');

  expect([none.code, JSON.parse(none.out)]).toEqual([0, { running: false, stopped: false }]);
  expect([stopped.code, JSON.parse(stopped.out)]).toEqual([
    0,
    { running: false, stopped: true, pid },
  ]);
});

test('every command that needs no server prints one value', async () => {
  const { agent } = openProject();
  const id = JSON.parse((await agent('create', 'one', '--json')).out).task_id;
  const other = JSON.parse((await agent('create', 'two', '--json')).out).task_id;

  for (const words of [
    ['show', id],
    ['list'],
    ['dep', 'add', id, other],
    ['dep', 'tree', id],
    ['dep', 'remove', id, other],
    ['close', id],
    ['replay', id],
    ['init', '--tracker', 'embedded'],
    ['doctor'],
    ['roles'],
    ['server', 'status'],
    ['token', 'rotate'],
    ['token'],
  ])
    expect(JSON.parse((await agent(...words, '--json')).out)).toBeTypeOf('object');
});

test.each([
  [['frobnicate']],
  [['lst']],
  [['show']],
  [['list', '--speed']],
  [['diff', 'bd-a', 'bd-b']],
  [['create', 'x', '--run']],
  [['create', 'x', '--priority', '7']],
  [['dep', 'add', 'bd-a']],
  [['dep', 'fly', 'bd-a']],
  [['server', 'jump']],
  [['respond', 'bd-a', '--allow', '--deny']],
  [['replay', 'bd-a', '--at', '-1']],
  [['list', '--project', '/nowhere/at/all']],
  [['completion', 'bash']],
  [['completion', 'tcsh']],
])(
  'wrong usage is refused with 2, an error object and the same text on stderr: %j',
  async (words) => {
    const { agent } = openProject();

    const { code, out, err } = await agent(...words, '--json');

    expect(code).toBe(2);
    const { error } = JSON.parse(out);
    expect(error).toMatchObject({ code: expect.stringMatching(/^(usage|invalid_params)$/) });
    expect(err).toContain(`agent: ${error.message}\n`);
  },
);
