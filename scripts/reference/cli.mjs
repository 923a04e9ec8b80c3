import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { commandTable } from '../../build/cli/command-table.js';
import { exitCodes } from '../../build/cli/output/exit-codes.js';
import { usageLineOf } from '../../build/cli/words/check-words.js';
import { flagPattern, meaningOf } from '../../build/cli/words/help.js';
import { roles } from '../../build/machines/task.js';
import { code, described, page, table } from './markdown.mjs';

/** The commands of the roles differ only in their name, so the first one represents all. */
const [firstRole, ...otherRoles] = roles;
const isShown = ({ name }) => !otherRoles.includes(name);
const titleOf = (name) => (name === firstRole ? roles.join(', ') : name);

const section = (command) => {
  const { name, aliases = [], describe, words, flags, examples } = command;
  const shown = Object.entries(flags).filter(([, { hidden }]) => hidden !== true);
  const rows = [
    ...words.map((word) => [code(word.name), meaningOf(word)]),
    ...shown.map(([flag, declared]) => [code(flagPattern(flag, declared)), meaningOf(declared)]),
  ];
  const also = aliases.length === 0 ? '' : ` Also: ${aliases.map(code).join(', ')}.`;
  return [
    `### ${titleOf(name)}`,
    `${code(usageLineOf(command))}: ${describe}.${also}`,
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
  configuration: 'the configuration is wrong, or the folder can be no project',
  unproven:
    '`agent replay --verify`: nothing was changed, but the file holds too little to prove it',
  timedOut: 'the time of `agent wait --timeout` is up',
  interrupted: 'Ctrl-C; the task is cancelled',
  terminated: 'killed during `agent watch`',
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
      ].sort(([one], [other]) => one - other),
    )}`,
  ]);
