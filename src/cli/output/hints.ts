import type { ErrorCode, ErrorFacts } from '../../machines/errors.ts';
import { textIn } from '../../machines/json.ts';
import { commandAdvice } from '../words/other-tools.ts';
import { clockText } from './local-time.ts';

type Hints = { readonly [Code in ErrorCode]?: (facts: ErrorFacts[Code]) => string | null };

const hints: Hints = {
  task_not_found: (facts) => {
    const use = commandAdvice(`run ${facts.task_id}`) ?? commandAdvice(facts.task_id);
    if (use !== null) return `use: ${use}`;
    if (facts.task_id.startsWith('wf-'))
      return `for a workflow: agent workflow show ${facts.task_id}, or: agent workflow list`;
    const meant = textIn(facts, 'did_you_mean');
    if (meant !== null) return `did you mean ${meant}?`;
    const role = textIn(facts, 'asked_role');
    return role === null
      ? "'agent list --all' shows the tasks"
      : `one word is an id of a task; to make a task of it: agent create ${facts.task_id} --role ${role} --run`;
  },
  event_not_allowed: ({ task_id, event, allowed }) => {
    if (['retry', 'delete'].includes(event) && allowed.includes('cancel'))
      return `'agent cancel ${task_id}' stops it`;
    return event === 'retry' && allowed.includes('reopen')
      ? `'agent reopen ${task_id}' puts it back in the queue`
      : null;
  },
  already_running: ({ task_id, parked_until: until }) =>
    until === undefined
      ? `watch it with 'agent logs -f ${task_id}' or stop it with 'agent cancel ${task_id}'`
      : `it goes on at ${clockText(until, Date.now())}; 'agent retry ${task_id}' tries now`,
  stale_attempt: ({ task_id, live_attempt }) =>
    `'agent show ${task_id}' shows what attempt ${live_attempt} asks`,
  credential_missing: () => "the flag for the fake model is '--model scripted'",
};
const hintsByCode = new Map<string, (facts: never) => string | null>(Object.entries(hints));

/** Commands that help with an error; null without any. */
export const hintFor = (code: string, facts: object): string | null =>
  hintsByCode.get(code)?.(facts as never) ?? null;
