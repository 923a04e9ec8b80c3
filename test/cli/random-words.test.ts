import { expect, test } from 'vitest';
import { commandTable } from '../../src/cli/command-table.ts';
import type { CliCommand } from '../../src/cli/declarations/command.ts';
import { exitCodes } from '../../src/cli/output/exit-codes.ts';
import { openProject } from '../support/cli.ts';
import { isLong } from '../support/long.ts';
import { randomFrom, seed } from '../support/random.ts';

/** They wait for an input, a browser or a signal, or start a server. */
const notRun = new Set(['hub', 'mcp', 'open', 'server']);
const documented = new Set<number | null>([...Object.values(exitCodes), 78]);
/** A stack, a name of an error class or of a system call, a word of a library. */
const notForPeople =
  /^\s+at |\b(?:Type|Range|Syntax|Zod|Reference)?Error:|\bE[A-Z]{4,}\b|\b(?:zod|yargs|undefined|NaN|ERR_\w+)\b|\[object |expected \w+, received/m;
const longestError = 2_000;
const runMs = isLong ? 60_000 : 4_000;
const mostRunMs = 20_000;
const mostRuns = isLong ? Number.POSITIVE_INFINITY : 400;
/** The same words in each short run; AGENT_TEST_SEED gives others. */
const start = isLong || 'AGENT_TEST_SEED' in process.env ? seed : 1;

const values = (id: string): readonly string[] => [
  ...['', ' ', '-1', '0', '1', '1.5', '1e309', '99999999999999999999', '--', '-x', '--no-'],
  ...['\0', 'a\0b', '\u202eevil', '\u001b[31mred', '👩‍👩‍👧', 'ﷺ', '\ud800', 'a\nb', '\'"`$(x)'],
  ...['x'.repeat(1_000_000), '../../etc/passwd', '/', '/dev/null', 'constructor', '__proto__'],
  ...['{}', '[1]', '%', '%00', 'bd-', 'bd-zzzz', id, id.slice(0, -1), `${id},${id}`, 'a=b', '5d'],
];

const createWords = (random: () => number, id: string) => {
  const pick = <One>(from: readonly One[]): One => from[Math.floor(random() * from.length)] as One;
  const value = (): string => pick(values(id));
  const flag = ({ flags }: CliCommand): readonly string[] => {
    const name = random() < 0.15 ? pick(['nope', 'Json', '', '👩‍👩‍👧', 'no-json', 'x=y']) : null;
    const known = pick([...Object.keys(flags), 'json', 'help', 'project', 'config']);
    const words = `--${(name ?? known).replaceAll('_', '-')}`;
    return pick([[words], [`${words}=${value()}`], [words, value()], [words, value()]]);
  };
  return (command: CliCommand): readonly string[] => {
    const own = command.words.flatMap(({ choices, many }) => {
      if (random() < 0.1) return [];
      const one = choices !== undefined && random() < 0.7 ? pick(choices) : value();
      return random() < 0.3 && many === true ? [one, value()] : [random() < 0.4 ? id : one];
    });
    const flags = Array.from({ length: Math.floor(random() * 4) }, () => flag(command)).flat();
    return [command.name, '--no-start', ...own, ...flags];
  };
};

const shown = (words: readonly string[]): string =>
  JSON.stringify(words.map((word) => (word.length > 60 ? `${word.slice(0, 60)}…` : word)));

test('random words end with a documented exit code and one sentence for people', {
  tags: ['slow'],
  timeout: runMs + 2 * mostRunMs,
}, async () => {
  const { agentWith, agent } = openProject();
  const id = (await agent('create', 'one')).out.trim();
  const random = randomFrom(start);
  const wordsFor = createWords(random, id);
  const commands = commandTable.filter(({ name }) => !notRun.has(name));
  const wrong: string[] = [];
  const begun = performance.now();
  let left = mostRuns;

  for (let at = Math.floor(random() * commands.length); ; at += 1) {
    if (performance.now() - begun > runMs || left === 0) break;
    left -= 1;
    const command = commands[at % commands.length] as CliCommand;
    const words = wordsFor(command);
    const late = new Promise<null>((resolve) => setTimeout(resolve, mostRunMs, null).unref());
    const ended = await Promise.race([agentWith({ EDITOR: 'true', PAGER: '' }, ...words), late]);
    if (ended === null) {
      wrong.push(`${shown(words)} does not end`);
      break;
    }
    const { code, err } = ended;
    const said = err.match(/^agent: /gm)?.length ?? 0;
    const fits =
      documented.has(code) &&
      err.length <= longestError &&
      !notForPeople.test(err) &&
      (command.words.some(({ many }) => many === true) || said <= 1) &&
      (code !== exitCodes.usage || said === 1);
    if (!fits) wrong.push(`${shown(words)}: ${code} ${err.slice(0, 300)}`);
  }

  expect(wrong, `seed ${start}`).toEqual([]);
});
