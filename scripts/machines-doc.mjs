// Writes docs/machines.md from the built machines; with --check, fails when the file has drifted.
import { agentMachine } from '../build/machines/agent/agent-machine.js';
import { agentRestart } from '../build/machines/agent/restart.js';
import { mergeQueueMachine } from '../build/machines/merge-queue/merge-queue-machine.js';
import { pullRequestMachine } from '../build/machines/pull-request/pull-request-machine.js';
import { sourceMachine } from '../build/machines/source/source-machine.js';
import { supervisorMachine } from '../build/machines/supervisor/supervisor-machine.js';
import { taskMachine } from '../build/machines/task/task-machine.js';
import { workflowMachine } from '../build/machines/workflow/workflow-machine.js';
import { eventName, guardName, statesOf, transitionsOf } from './charts/read-chart.mjs';
import { generate } from './generated.mjs';

const nameOf = (object) => (typeof object === 'string' ? object : object.type);
const path = (node) => node.path.join('.') || node.key;

const actionsOf = (transition) => transition.actions.map(nameOf);

const cell = (text) => text.replaceAll('|', '\\|');

const picture = ({ id }) => `![The states of the ${id} machine](images/${id}-machine.svg)`;

/** Where a state can go, one row for each event and guard, in the order in which they are tried. */
const transitionTable = (machine) =>
  [
    '| from | event | guard | to |',
    '|---|---|---|---|',
    ...statesOf(machine.root).flatMap((node) =>
      transitionsOf(node).flatMap(({ type, transition }) =>
        (transition.target ?? [node]).map(
          (target) =>
            `| ${node === machine.root ? 'any state' : `\`${path(node)}\``} | ${eventName(type)} | ${guardName(transition) ?? ''} | ${target === node ? 'stays' : `\`${path(target)}\``} |`,
        ),
      ),
    ),
  ].join('\n');

const resumes = (at) => (at === null ? 'resume' : `resume (${at})`);
const onAgentRestart = (row) => {
  if (typeof row === 'function') return 'resume (where it was to)';
  return row === 'over' ? 'rest' : resumes(row);
};
const tagsOf = (node) => [...node.tags, ...(node.parent === undefined ? [] : tagsOf(node.parent))];
/**
 * Like XState's restore of a snapshot: it starts the invoked actors of the state again, and nothing
 * else.
 */
const onTaskRestart = (node) => {
  if (Object.keys(node.states).length > 0) return '';
  if (node.always?.length > 0) return 'never';
  if (!tagsOf(node).includes('pending')) return 'rest';
  if (node.invoke.some(({ src }) => src === 'runAttempt')) return 'resume';
  return node.invoke.length > 0 ? 'repeat' : 'wait';
};
const onHostedRestart = (node) => {
  if (Object.keys(node.states).length > 0) return '';
  if (node.always?.length > 0) return 'never';
  return node.invoke.length > 0 ? 'repeat' : 'rest';
};
const restarts = {
  task: onTaskRestart,
  agent: (node) => (path(node) in agentRestart ? onAgentRestart(agentRestart[path(node)]) : ''),
  supervisor: () => 'new',
  workflow: onHostedRestart,
  mergeQueue: onHostedRestart,
  pullRequest: onHostedRestart,
  source: onHostedRestart,
};

const stateTable = (machine) =>
  [
    '| state | what it means | works | leaves by | restart |',
    '|---|---|---|---|---|',
    ...statesOf(machine.root)
      .slice(1)
      .map((node) => {
        const works = node.invoke
          .map(({ id, src }) => (id === src ? id : `${id} (${src})`))
          .join(', ');
        const leaves = [...new Set(transitionsOf(node).map(({ type }) => eventName(type)))].join(
          ', ',
        );
        const says = node.meta?.says ?? (node.always?.length > 0 ? 'decides at once' : '');
        return `| \`${path(node)}\` | ${cell(says)} | ${cell(works)} | ${cell(leaves)} | ${restarts[machine.id](node)} |`;
      }),
  ].join('\n');

const named = (machine) => {
  const all = statesOf(machine.root).flatMap((node) =>
    transitionsOf(node).map(({ transition }) => transition),
  );
  const guards = new Set(all.flatMap(({ guard }) => (guard === undefined ? [] : [nameOf(guard)])));
  const actions = new Set([
    ...all.flatMap(actionsOf),
    ...statesOf(machine.root).flatMap((node) => [...node.entry, ...node.exit].map(nameOf)),
  ]);
  const list = (names) =>
    [...names]
      .sort()
      .map((name) => `\`${name}\``)
      .join(', ');
  return `Guards: ${list(guards) || 'none'}.\n\nActions: ${list(actions) || 'none'}.`;
};

const section = (title, says, machine) =>
  `## ${title}\n\n${says}\n\n${picture(machine)}\n\n${stateTable(machine)}\n\n${transitionTable(machine)}\n\n${named(machine)}\n`;

const text = [
  '# The machines\n',
  'Generated from `src/machines` by `npm run docs`. Change the source, not this page.\n',
  'The pictures show the usual ways. Exits that nearly every state has are coloured ticks beside its box.',
  'The tables have every transition, in the order in which XState tries them: `x done` and `x error` are the',
  'ends of the actor `x` that the state invokes, `always` is taken at once, `DEADLINE` comes when the time in',
  '`deadlineAt` is over.\n',
  'The column `restart` says what a server does at its start with a task, a workflow or a merge queue that an earlier server',
  'left in the state (for agents: `src/machines/agent/restart.ts`):\n',
  '- `rest`: nothing.',
  '- `repeat`: it starts the actor of the state again.',
  '- `resume`: the agent goes on where it was.',
  '- `wait`: it waits until the deadline.',
  '- `never`: no task is ever left in it.',
  '- `new`: the supervisor starts anew, and takes running and waiting tasks from the store.\n',
  section(
    'Task',
    'One actor per task that is being run or was asked for. `started` means exactly: it has a slot, held or lent, and an attempt is live.',
    taskMachine,
  ),
  section(
    'Supervisor',
    'One actor per server: who waits, who holds a slot, and the agents at work.',
    supervisorMachine,
  ),
  section('Agent', 'One actor per attempt, a child of the supervisor.', agentMachine),
  section(
    'Workflow',
    'One actor per workflow: the phases of its definition, one after another. `agent workflow check` searches this chart.',
    workflowMachine,
  ),
  section(
    'Merge queue',
    "One actor while there is something to merge: what it tests is what the project's branch gets.",
    mergeQueueMachine,
  ),
  section(
    'Pull request',
    'One actor per task that is published: it ends when its pull request is merged, or nobody wants it.',
    pullRequestMachine,
  ),
  section(
    'Source',
    'One actor for each of `tracker.sources`: it keeps tasks in step with issues of a forge.',
    sourceMachine,
  ),
].join('\n');

generate('docs/machines.md', text);
