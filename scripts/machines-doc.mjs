// Writes docs/machines.md from the built machines; with --check, fails when the file has drifted.
import { agentMachine } from '../build/machines/agent-machine.js';
import { agentRestart } from '../build/machines/restart.js';
import { supervisorMachine } from '../build/machines/supervisor-machine.js';
import { taskMachine } from '../build/machines/task-machine.js';
import { generate } from './generated.mjs';

const nameOf = (object) => (typeof object === 'string' ? object : object.type);

const eventName = (type) => {
  if (type === '') return 'always';
  const [, kind, id] = /^xstate\.(done|error)\.actor\.(.+)$/.exec(type) ?? [];
  return kind === undefined
    ? type
    : `${id === '*' ? 'any child' : id} ${kind === 'done' ? 'done' : 'error'}`;
};

const guardOf = ({ guard }) => {
  if (guard === undefined) return '';
  const is =
    typeof guard.params === 'function' ? guard.params({ event: {}, context: {} })?.is : undefined;
  return ` [${nameOf(guard)}${is === undefined ? '' : ` ${is}`}]`;
};
const safeGuard = (transition) => {
  try {
    return guardOf(transition);
  } catch {
    return ` [${nameOf(transition.guard)}]`;
  }
};

const states = (node) => [node, ...Object.values(node.states).flatMap(states)];
const alias = (node) => node.id.replace(/[^A-Za-z0-9]/g, '_');
const path = (node) => node.path.join('.') || node.key;

const transitions = (node) => [
  ...[...node.transitions.entries()].flatMap(([type, list]) =>
    list.map((transition) => ({ type, transition })),
  ),
  ...(node.always ?? []).map((transition) => ({ type: '', transition })),
];

const actionsOf = (transition) => transition.actions.map(nameOf);

const edges = (node) =>
  transitions(node).flatMap(({ type, transition }) => {
    const label = `${eventName(type)}${safeGuard(transition)}`;
    return (transition.target ?? [node]).map(
      (target) => `  ${alias(node)} --> ${alias(target)} : ${label}`,
    );
  });

const compound = (node, depth) => {
  const pad = '  '.repeat(depth);
  const children = Object.values(node.states);
  if (children.length === 0) return [`${pad}state "${node.key}" as ${alias(node)}`];
  const initial = node.initial?.target?.[0];
  return [
    `${pad}state "${node.key}" as ${alias(node)} {`,
    ...(initial === undefined ? [] : [`${pad}  [*] --> ${alias(initial)}`]),
    ...children.flatMap((child) => compound(child, depth + 1)),
    `${pad}}`,
  ];
};

const diagram = (machine) => {
  const { root } = machine;
  const initial = root.initial.target[0];
  const finals = states(root).filter(({ type }) => type === 'final');
  const rootEdges = edges(root).map((edge) =>
    edge.replace(`${alias(root)} -->`, `${alias(root)}_any -->`),
  );
  const any = rootEdges.length === 0 ? [] : [`  state "in any state" as ${alias(root)}_any`];
  const shown = rootEdges.map((edge) =>
    edge.replace(`--> ${alias(root)} :`, `--> ${alias(root)}_any :`),
  );
  return [
    '```mermaid',
    'stateDiagram-v2',
    `  [*] --> ${alias(initial)}`,
    ...Object.values(root.states).flatMap((node) => compound(node, 1)),
    ...any,
    ...shown,
    ...states(root).slice(1).flatMap(edges),
    ...finals.map((node) => `  ${alias(node)} --> [*]`),
    '```',
  ].join('\n');
};

const cell = (text) => text.replaceAll('|', '\\|');

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
const restarts = {
  task: onTaskRestart,
  agent: (node) => (path(node) in agentRestart ? onAgentRestart(agentRestart[path(node)]) : ''),
  supervisor: () => 'new',
};

const stateTable = (machine) =>
  [
    '| state | what it means | works | leaves by | restart |',
    '|---|---|---|---|---|',
    ...states(machine.root)
      .slice(1)
      .map((node) => {
        const works = node.invoke
          .map(({ id, src }) => (id === src ? id : `${id} (${src})`))
          .join(', ');
        const leaves = [...new Set(transitions(node).map(({ type }) => eventName(type)))].join(
          ', ',
        );
        const says = node.meta?.says ?? (node.always?.length > 0 ? 'decides at once' : '');
        return `| \`${path(node)}\` | ${cell(says)} | ${cell(works)} | ${cell(leaves)} | ${restarts[machine.id](node)} |`;
      }),
  ].join('\n');

const named = (machine) => {
  const all = states(machine.root).flatMap((node) =>
    transitions(node).map(({ transition }) => transition),
  );
  const guards = new Set(all.flatMap(({ guard }) => (guard === undefined ? [] : [nameOf(guard)])));
  const actions = new Set([
    ...all.flatMap(actionsOf),
    ...states(machine.root).flatMap((node) => [...node.entry, ...node.exit].map(nameOf)),
  ]);
  const list = (names) =>
    [...names]
      .sort()
      .map((name) => `\`${name}\``)
      .join(', ');
  return `Guards: ${list(guards) || 'none'}.\n\nActions: ${list(actions) || 'none'}.`;
};

const section = (title, says, machine) =>
  `## ${title}\n\n${says}\n\n${diagram(machine)}\n\n${stateTable(machine)}\n\n${named(machine)}\n`;

const text = [
  '# The machines\n',
  'Generated from `src/machines` by `npm run docs`. Change the source, not this page.\n',
  'An edge shows its event and, in brackets, its guard. `x done` and `x error` are the ends of the actor `x`',
  'that the state invokes. `always` is taken at once. `DEADLINE` comes when the time in `deadlineAt` is over.\n',
  'The column `restart` says what a server does at its start with a task that an earlier server left in the',
  'state (for agents: `src/machines/restart.ts`):\n',
  '- `rest`: nothing.',
  '- `repeat`: it starts the actor of the state again.',
  '- `resume`: the agent goes on where it was.',
  '- `wait`: it waits until the deadline.',
  '- `never`: no task is ever left in it.',
  '- `new`: the supervisor starts anew, and takes running and waiting tasks from the store.\n',
  section(
    'Task',
    'One actor per task that is being run or was asked for. `started` means exactly: a slot is held and an attempt is live.',
    taskMachine,
  ),
  section(
    'Supervisor',
    'One actor per server: who waits, who holds a slot, and the agents at work.',
    supervisorMachine,
  ),
  section('Agent', 'One actor per attempt, a child of the supervisor.', agentMachine),
].join('\n');

generate('docs/machines.md', text);
