import { eventTypes } from '../../build/actors/journal/event-types.js';
import { described } from './markdown.mjs';

const tokens = {
  input_tokens: 'tokens that the model read',
  output_tokens: 'tokens that the model wrote',
  cached_tokens: 'input tokens that the provider had cached',
  cache_write_tokens: 'input tokens that the provider wrote to its cache, where there were any',
  cost_usd: 'cost in USD, where the price is known',
};
const call = {
  turn: 'number of the turn',
  model: 'the model',
  purpose: '`compact` when the call summarises the conversation',
};
const end = {
  attempt: 'number of the attempt',
  usage: 'turns, calls and tokens of the attempt',
  role: 'the role that worked on it',
  execution_seconds: 'time from the start to the end',
  results_path: 'the results file, inside the project',
};
const asks = {
  input_id: 'send it with `respond`',
  kind: '`input` or `approval`',
  question: 'the question, or what the calls are for',
  calls: 'the calls that need approval: `call_id`, `tool`, `arguments`',
  deadline: 'when it is too late to answer',
  default_answer: 'the answer that counts when nobody answers',
  again: '`true` when it is asked again after a restart of the server',
};

/** The meaning of each type of frame, and the fields of its data. */
const frames = {
  snapshot: [
    'a statechart took a transition; the whole task as it is now',
    {
      machine: '`task`, `agent` or `tracker`',
      value: 'the state of the chart',
      tags: 'the tags of the state',
      task: 'the task, as `status` answers it',
    },
  ],
  status_update: [
    'status or phase changed',
    {
      status: 'the status',
      phase: 'what it does or waits for',
      progress: 'from 0 to 1',
      error: 'why a request was refused or an attempt failed',
      waited_seconds: 'how long the task waited for its slot, when it gets it',
    },
  ],
  api_call_start: [
    'a model call begins',
    { ...call, max_turns: 'how many turns the attempt may take' },
  ],
  api_call_complete: [
    'a model call ended',
    {
      ...call,
      duration_ms: 'how long it took',
      ok: 'whether it succeeded',
      error: 'why it failed',
      ...tokens,
      run: 'the run whose budget it counts for',
    },
  ],
  text_delta: ['text of the model or of the assistant', { text: 'the next piece' }],
  tool_start: [
    'a tool call begins',
    {
      call_id: 'id of the call',
      tool: 'name of the tool',
      arguments: 'the arguments as JSON text, shortened',
    },
  ],
  tool_output: [
    'a command writes',
    { call_id: 'id of the call', tool: 'name of the tool', chunk: 'what it wrote' },
  ],
  tool_end: [
    'a tool call ended',
    {
      call_id: 'id of the call',
      tool: 'name of the tool',
      ok: 'whether it succeeded',
      duration_ms: 'how long it took',
      output: 'the result, shortened',
    },
  ],
  input_required: ['the agent asks a person', asks],
  approval_required: ['the agent wants to make calls that need approval', asks],
  usage: [
    'tokens that were spent',
    {
      turn: 'number of the turn',
      assistant: 'the assistant, where one works',
      model_calls: 'model calls of the assistant',
      ...tokens,
      run: 'the run whose budget it counts for',
    },
  ],
  log: [
    'a remark of the server about the attempt',
    {
      level: '`info`, `warn` or `error`',
      message: 'the remark',
      decision: 'of a person: `kind`, `about` (the calls), `said`',
      exit_code: 'of a verify command',
      attempt: 'number of the attempt',
      branch: 'the branch with the work',
      base: 'the commit that the work started from',
      commit: 'the last commit of the work',
      files: 'how many files changed',
      insertions: 'lines added',
      deletions: 'lines removed',
      merge_commit: 'the commit of your branch that has the work',
    },
  ],
  completed: [
    'the task is complete',
    { ...end, progress: 'always 1', result: 'the summary of the agent' },
  ],
  failed: ['the attempt failed', { ...end, error: 'name, message and facts of the failure' }],
  cancelled: ['the task was cancelled', { ...end, reason: 'why, or null' }],
  tracker_imported: [
    'somebody else changed the task in `.beads/issues.jsonl`, and the server took it over',
    {
      change: '`added`, `changed` or `removed`',
      fields: 'the keys of the line whose values changed',
    },
  ],
  network: [
    'something in the sandbox asked the proxy for a host, for the first time in the attempt',
    {
      host: 'the host',
      port: 'its port',
      allowed: 'whether it was let through',
    },
  ],
  mergeQueue: [
    'a merge queue made a transition; `task_id` is the id of the queue',
    {
      waiting: 'the tasks whose work waits',
      batch: 'those that are built, tested and landed together',
      cars: 'those of the batch that merge cleanly, in their order',
      machine: '`mergeQueue`',
      value: 'the state of its chart',
    },
  ],
  pullRequest: [
    'the pull request of a task made a transition; `task_id` is that of the task, with `/pr`',
    {
      task: 'the id of the task',
      pull_request: 'as in the view of the task',
      machine: '`pullRequest`',
      value: 'the state of its chart',
    },
  ],
  source: [
    'a source of tasks made a transition; `task_id` is the id of the source',
    {
      repository: 'its repository; null: that of the forge',
      labels: 'what its issues have',
      seen: 'what the last look did: `issues, made, changed, ended`, its time and its place in the journal',
      problem: 'why it cannot be read; null: it can',
      machine: '`source`',
      value: 'the state of its chart',
    },
  ],
  workflow: [
    'a workflow made a transition; `task_id` is the id of the workflow',
    {
      workflow_id: 'its id',
      kind: 'the name of its definition',
      name: 'the feature, or the question',
      phase: 'the number of its phase',
      status: '`started`, `complete`, `stopped`, `failed` or `cancelled`',
      machine: '`workflow`',
      value: 'the state of its chart',
      round: 'the round of its phase, from 1',
      why: 'why a person gave it up, since its saved state cannot be restored',
    },
  ],
  stream_closed: [
    'the last frame of an attempt',
    { task_id: 'the task', message: 'why the stream ends' },
  ],
};

/** Frames that are not in the journal; they have no id. */
const controls = {
  connected: [
    'the first frame of a stream',
    { task_id: 'the task', message: 'what you are connected to' },
  ],
  gap: [
    'you are too far behind, or ask for entries that were removed, and are disconnected',
    { resume_from: 'send it as `Last-Event-ID`', message: 'what to do' },
  ],
};

/** The TypeScript type of each key of data, or of a key in one type of frame. */
const types = {
  again: 'boolean',
  allowed: 'boolean',
  arguments: 'string',
  assistant: 'string',
  attempt: 'number',
  base: 'string',
  batch: 'readonly string[]',
  branch: 'string',
  cached_tokens: 'number',
  cache_write_tokens: 'number',
  call_id: 'string',
  calls:
    'readonly { readonly call_id: string; readonly tool: string; readonly arguments: unknown }[]',
  cars: 'readonly string[]',
  change: "'added' | 'changed' | 'removed'",
  chunk: 'string',
  commit: 'string',
  cost_usd: 'number',
  deadline: 'string | null',
  decision: 'Readonly<Record<string, unknown>>',
  default_answer: 'string | null',
  deletions: 'number',
  duration_ms: 'number',
  error: 'string',
  execution_seconds: 'number',
  exit_code: 'number',
  fields: 'readonly string[]',
  files: 'number',
  host: 'string',
  input_id: 'string',
  input_tokens: 'number',
  insertions: 'number',
  kind: "'input' | 'approval'",
  level: "'info' | 'warn' | 'error'",
  machine: 'string',
  max_turns: 'number',
  merge_commit: 'string',
  message: 'string',
  model: 'string',
  model_calls: 'number',
  name: 'string',
  ok: 'boolean',
  output: 'string',
  output_tokens: 'number',
  phase: "Task['phase']",
  port: 'number',
  progress: 'number',
  pull_request: "Task['pull_request']",
  purpose: 'string',
  question: 'string',
  reason: 'string | null',
  result: 'string',
  results_path: 'string',
  resume_from: 'number',
  role: "Task['role']",
  round: 'number',
  run: 'string',
  status: "Task['status']",
  tags: 'readonly string[]',
  task: 'string',
  task_id: 'string',
  text: 'string',
  tool: 'string',
  turn: 'number',
  usage: "Task['usage']",
  value: 'unknown',
  waited_seconds: 'number',
  waiting: 'readonly string[]',
  why: 'string',
  workflow_id: 'string',
  'failed.error': "Task['error'] | null",
  'mergeQueue.machine': "'mergeQueue'",
  'pullRequest.machine': "'pullRequest'",
  'snapshot.machine': "'task' | 'agent' | 'tracker'",
  'snapshot.task': 'Task',
  'status_update.error': "Task['error'] | null",
  'source.labels': 'readonly string[]',
  'source.machine': "'source'",
  'source.problem': 'Readonly<Record<string, unknown>> | null',
  'source.repository': 'string | null',
  'source.seen': 'Readonly<Record<string, unknown>> | null',
  'workflow.kind': 'string',
  'workflow.machine': "'workflow'",
  'workflow.phase': 'number',
  'workflow.status': "'started' | 'complete' | 'stopped' | 'failed' | 'cancelled'",
};
const typeOf = (type, key) => types[`${type}.${key}`] ?? types[key];

export const journalFrames = described('frames', [...eventTypes], frames);
export const controlFrames = Object.entries(controls);

/** The fields of data that the page does not name; [] when it names all. */
export const unknownKeys = ({ type, data }) => {
  const keys = frames[type]?.[1];
  return keys === undefined ? [type] : Object.keys(data).filter((key) => keys[key] === undefined);
};

/** Each type of frame, with the TypeScript types and meanings of its data. @throws Error for a key without a type */
export const typedFrames = [...journalFrames, ...controlFrames].map(([type, [says, keys]]) => ({
  type,
  says,
  data: Object.entries(keys).map(([key, meaning]) => {
    const of = typeOf(type, key);
    if (of === undefined) throw new Error(`no type for ${type}.${key}`);
    return { key, meaning, type: of };
  }),
}));

const holds = (type, value) => {
  if (type.includes(' | ')) return type.split(' | ').some((each) => holds(each, value));
  if (type.startsWith("'")) return value === type.slice(1, -1);
  if (type === 'readonly string[]')
    return Array.isArray(value) && value.every((each) => typeof each === 'string');
  if (type === 'null') return value === null;
  if (/^Task\['(status|phase|role)'\]$/.test(type)) return typeof value === 'string';
  if (['string', 'number', 'boolean'].includes(type)) return typeof value === type;
  return type === 'unknown' || (typeof value === 'object' && value !== null);
};

/** The fields of data whose values have another type than the client says. */
export const wrongTypes = ({ type, data }) =>
  Object.entries(data)
    .filter(([key, value]) => value !== undefined && !holds(typeOf(type, key) ?? 'unknown', value))
    .map(([key, value]) => `${type}.${key}: ${JSON.stringify(value)}`);
