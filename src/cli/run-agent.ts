import type { CommandContext } from './client/command-context.ts';
import { setUpCommand, withMeantId } from './client/command-setup.ts';
import { commandTable } from './command-table.ts';
import type { Project } from './config/places/project.ts';
import type { Invocation } from './invocation.ts';
import { isYes } from './output/ask.ts';
import { exitCodes } from './output/exit-codes.ts';
import type { Io } from './output/io.ts';
import { oneLine } from './output/safe-text.ts';
import { helpWidth, renderCommandHelp, renderHelp } from './words/help.ts';
import { correctionOf, type Reading, readCommand } from './words/read-command.ts';

type AskedOf<Kind extends Reading['kind']> = Extract<Reading, { readonly kind: Kind }>;

/** Without a pager, as gh, docker and kubectl do. */
const printHelp = ({ command }: AskedOf<'help'>, io: Io): number => {
  const width = helpWidth(process.stdout.columns);
  io.out(command === null ? renderHelp(commandTable, width) : renderCommandHelp(command, width));
  return exitCodes.done;
};

const printVersion = async ({ json }: AskedOf<'version'>, io: Io): Promise<number> => {
  const { version } = await import('./version.ts');
  if (json) io.json({ version });
  else io.out(version);
  return exitCodes.done;
};

const projectIn = (context: CommandContext): Project | null => {
  try {
    return context.project;
  } catch {
    return null;
  }
};

const runNamedCommand = async (
  { command, args }: AskedOf<'run'>,
  invocation: Invocation,
  io: Io,
): Promise<number> => {
  const file = args['token-file'];
  if (file === undefined && !invocation.env['AGENT_TOKEN'])
    return runSetUp({ kind: 'run', command, args }, invocation, io);
  const [{ givenToken, requireRight }, { needsOfCommand }] = await Promise.all([
    import('./people/given-token.ts'),
    import('../http/people/rights.ts'),
  ]);
  const token = givenToken(file, invocation);
  const own = { ...invocation, token };
  const action = 'action' in args ? args.action : undefined;
  const needs = needsOfCommand(command.name, action) ?? 'admin';
  // What the server gives, it checks itself.
  if (token !== undefined && needs !== 'read')
    await requireRight(setUpCommand(command, args, own, io).context, needs);
  return runSetUp({ kind: 'run', command, args }, own, io);
};

const runSetUp = async (
  { command, args }: AskedOf<'run'>,
  invocation: Invocation,
  io: Io,
): Promise<number> => {
  const { context, readArgs } = setUpCommand(command, args, invocation, io);
  const runIn = (given: CommandContext) =>
    withMeantId(given, async () => command.run(given, (await readArgs()) as never));
  if (command.notesTracker === undefined) return runIn(context);
  const { withLimitsNote, withTrackerNote } = await import('./config/tracker-note.ts');
  const { json, config } = args;
  const project = projectIn(context);
  // The command says itself why.
  if (project === null) return runIn(context);
  const given = { project, config, env: context.env, json, say: io.err };
  const noted: CommandContext =
    command.notesLimits === true
      ? { ...context, connection: withLimitsNote(context.connection, given, args) }
      : context;
  return withTrackerNote(command.notesTracker, given, () => runIn(noted));
};

const shownWord = (word: string): string =>
  /^[\w./:=,@+-]+$/.test(word) ? word : JSON.stringify(word);

/** On a terminal, a command that is spelled wrongly is asked about; it may start a paid run. */
const corrected = async (
  words: readonly string[],
  { ask }: Pick<Io, 'ask'>,
): Promise<readonly string[]> => {
  if (ask === null || words.includes('--json')) return words;
  const correction = correctionOf(words);
  if (correction === null) return words;
  const line = oneLine(['agent', ...correction.words.map(shownWord)].join(' '), 200);
  const said = await ask(
    `there is no command ${oneLine(correction.given, 40)}; run this? ${line} [y/N] `,
  );
  return said !== null && isYes(said) ? correction.words : words;
};

/** @returns the exit code; never rejects */
const runCommandLine = async (invocation: Invocation, io: Io): Promise<number> => {
  try {
    const words = await corrected(invocation.words, io);
    const asked = readCommand(words);
    if (asked.kind === 'help') return printHelp(asked, io);
    if (asked.kind === 'version') return await printVersion(asked, io);
    return await runNamedCommand(asked, { ...invocation, words }, io);
  } catch (error) {
    const { reportError } = await import('./output/report-error.ts');
    return reportError(error, invocation, io);
  }
};

export const runAgent = async (invocation: Invocation, io: Io): Promise<number> => {
  const [first, ...words] = invocation.words;
  if (first === '__complete') {
    const { complete } = await import('./setup/complete.ts');
    return complete({ ...invocation, words: words.slice(words[0] === '--' ? 1 : 0) }, io);
  }
  if (first !== 'open-url') return runCommandLine(invocation, io);
  const { openUrl } = await import('./setup/open-url.ts');
  return openUrl(words, io, invocation.env);
};
