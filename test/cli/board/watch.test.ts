import { execFileSync } from 'node:child_process';
import { readFileSync, readlinkSync } from 'node:fs';
import { expect, test } from 'vitest';
import { openProject } from '../../support/cli.ts';

/** `agent watch`: the board on a real terminal, and lines in a pipe. */

const enter = '\u001b[?1049h\u001b[?25l\u001b[?7l';
const leave = '\u001b[?7h\u001b[?25h\u001b[?1049l';

const openBoard = async () => {
  const project = openProject();
  const id = (await project.agent('create', 'count \u001b[31mthings', '--role', 'engineer')).out;
  const child = project.startOnTerminal('watch');
  let screen = '';
  const shows = (wanted: string): Promise<void> =>
    new Promise((resolve) => {
      const look = (): void => {
        if (!screen.includes(wanted)) return;
        child.stdout?.off('data', look);
        resolve();
      };
      child.stdout?.on('data', look);
      look();
    });
  child.stdout?.setEncoding('utf8').prependListener('data', (chunk: string) => {
    screen += chunk;
  });
  const ended = new Promise<number | null>((resolve) => {
    child.once('close', (code) => resolve(code));
  });
  await shows('q quit');
  return { project, id: id.trim(), child, shows, ended, screen: () => screen };
};

test('a task moves on the board while it runs, Enter shows it, and q leaves the terminal clean', {
  tags: ['slow'],
}, async () => {
  const { project, id, child, shows, ended, screen } = await openBoard();

  expect(screen()).toContain('Queued 1');
  await project.agent('engineer', id, '--model', 'scripted');
  await shows('Done 1');
  child.stdin?.write('\r');
  await shows('status     complete');
  child.stdin?.write('\rq');

  expect(await ended).toBe(0);
  expect(screen().split(enter)).toHaveLength(2);
  expect(screen().split(leave)).toHaveLength(2);
  expect(screen().indexOf(leave)).toBeGreaterThan(screen().lastIndexOf('q quit'));
  // Nothing of a title, and without colour nothing else, but moves of the cursor.
  expect(screen().replaceAll(enter, '').replaceAll(leave, '')).not.toMatch(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
    /\u001b(?!\[[HJK])/,
  );
});

/** The terminal that `script` opened. */
const terminalOf = (pid: number | undefined): string => {
  const [shell] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ');
  return readlinkSync(`/proc/${shell}/fd/0`);
};

test('the board is drawn anew for a terminal that changes its size', async () => {
  const { child, shows, ended, screen } = await openBoard();

  execFileSync('stty', ['-F', terminalOf(child.pid), 'cols', '20', 'rows', '10']);
  await shows('j/k move · Enter sh…');
  expect(screen().split('\u001b[H').at(-1)).not.toContain('q quit');
  child.stdin?.write('q');

  expect(await ended).toBe(0);
});

test('q leaves from the help too, as the help says', async () => {
  const { child, shows, ended } = await openBoard();

  child.stdin?.write('?');
  await shows('this help');
  child.stdin?.write('q');

  expect(await ended).toBe(0);
});

test('Ctrl-C leaves the terminal clean, with exit code 130', async () => {
  const { child, ended, screen } = await openBoard();

  child.stdin?.write('\u0003');

  expect(await ended).toBe(130);
  expect(screen().split(leave)).toHaveLength(2);
});

test('kill leaves the terminal clean', { tags: ['slow'] }, async () => {
  const { child, ended, screen } = await openBoard();

  const childOf = (pid: string) => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  process.kill(Number(childOf(childOf(String(child.pid)))), 'SIGTERM');

  expect(await ended).not.toBe(0);
  expect(screen().split(leave)).toHaveLength(2);
});

test('piped, each change is a line, and --json prints the events', { tags: ['slow'] }, async () => {
  const project = openProject();
  const id = (await project.agent('create', 'count', '--role', 'engineer')).out.trim();
  await project.agent('server', 'start');
  const plain = project.start('agent', ['watch']);
  const json = project.start('agent', ['watch', '--json']);
  const until = (child: typeof plain, wanted: string): Promise<string> =>
    new Promise((resolve) => {
      let out = '';
      child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
        out += chunk;
        if (out.includes(wanted)) resolve(out);
      });
    });
  const lines = until(plain, `${id} complete`);
  const connected = until(json, '"connected"');
  const events = until(json, '"completed"');

  await connected;
  await project.agent('engineer', id, '--model', 'scripted');

  expect(await lines).not.toContain('\u001b');
  for (const line of (await events).trimEnd().split('\n').slice(0, -1))
    expect(JSON.parse(line)).toHaveProperty('type');
  plain.kill();
  json.kill();
});
