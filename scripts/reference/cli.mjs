import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { commandTable } from '../../build/cli/command-table.js';
import { exitCodes } from '../../build/cli/output/exit-codes.js';
import { roles } from '../../build/machines/task.js';
import { code, described, page, table } from './markdown.mjs';

/** Replaces the parser: records what a command declares. */
const declarationsOf = ({ builder }) => {
  const noted = { positionals: [], options: [], examples: [] };
  const parser = {
    positional: (name, declared = {}) => {
      noted.positionals.push([name, declared]);
      return parser;
    },
    option: (name, declared) => {
      noted.options.push([name, declared]);
      return parser;
    },
    options: (all) => {
      noted.options.push(...Object.entries(all));
      return parser;
    },
    example: (line, says) => {
      noted.examples.push([line, says]);
      return parser;
    },
  };
  builder(parser);
  return noted;
};

const choices = ({ choices: given }) =>
  given === undefined ? '' : `one of ${given.map(code).join(', ')}`;
const says = (declared) => [declared.describe, choices(declared)].filter(Boolean).join('; ');

const optionRow = ([name, declared]) => {
  const names = [name, declared.alias]
    .filter(Boolean)
    .map((each) => (each.length === 1 ? `-${each}` : `--${each}`));
  const value =
    declared.type === 'boolean' ? '' : ` <${declared.type === 'number' ? 'number' : 'text'}>`;
  const more = declared.array === true ? ' (several times for more)' : '';
  return [code(names.join(', ') + value), says(declared) + more];
};

/** The commands of the roles differ only in their name, so the first one represents all. */
const [firstRole, ...otherRoles] = roles;
const isShown = ({ command }) => !otherRoles.includes(command.split(' ')[0]);
const titleOf = (name) => (name === firstRole ? roles.join(', ') : name);

const section = (command) => {
  const { positionals, options, examples } = declarationsOf(command);
  const rows = [
    ...positionals.map(([name, declared]) => [code(name), says(declared)]),
    ...options.map(optionRow),
  ];
  const [first] = command.command.split(' ');
  return [
    `### ${titleOf(first)}`,
    `\`agent ${command.command}\`: ${command.describe}.`,
    ...(rows.length === 0 ? [] : [table(['argument', 'meaning'], rows)]),
    `\`\`\`sh\n${examples.map(([line, what]) => `${line}    # ${what}`).join('\n')}\n\`\`\``,
  ].join('\n\n');
};

const exits = {
  done: 'done',
  failed: 'the task failed, or an unexpected error',
  usage: 'the command was written wrongly',
  notFound: 'the task does not exist',
  conflict: 'not allowed in the state that the task is in',
  cancelled: 'the task was cancelled',
  unavailable: 'no server, no tracker, or a limit is reached; try again later',
  noCredential: 'no key for a model and no assistant that is logged in',
  unauthorized: 'the token is missing or wrong',
  timedOut: 'the time of `agent wait --timeout` is up',
  interrupted: 'Ctrl-C; the task is cancelled',
};

/** The output of --help, which depends on no server and no project. */
const help = (program) =>
  execFileSync(
    process.execPath,
    [fileURLToPath(new URL(`../../dist/cli/${program}.js`, import.meta.url)), '--help'],
    {
      encoding: 'utf8',
    },
  ).trimEnd();

export const cliPage = () =>
  page('Command line', '`src/cli`', [
    'Two programs: `agent` is for you, `agent-server` runs the server. `agent <command> --help` prints the help of one command.',
    `## agent\n\n\`\`\`\n${help('agent')}\n\`\`\``,
    ...commandTable.filter(isShown).map(section),
    `## agent-server\n\n\`\`\`\n${help('agent-server')}\n\`\`\``,
    `## Exit codes\n\n${table(
      ['code', 'meaning'],
      [
        ...described('exit codes', Object.keys(exitCodes), exits).map(([name, meaning]) => [
          exitCodes[name],
          meaning,
        ]),
        [78, 'the configuration is wrong'],
      ].sort(([one], [other]) => one - other),
    )}`,
  ]);
