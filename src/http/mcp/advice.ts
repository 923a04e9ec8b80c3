import { z } from 'zod';
import {
  describeRefusal,
  type ErrorCode,
  type ErrorFacts,
  refusal,
} from '../../machines/errors.ts';
import type { McpFailure } from './backend.ts';

type ErrorAdvice = { readonly [Code in ErrorCode]?: (facts: ErrorFacts[Code]) => string };

/** An assistant calls tools; the commands of our command line are for people. */
const advice: ErrorAdvice = {
  task_not_found: () => 'list_tasks shows the tasks',
  already_running: () => 'wait_for_task follows it',
  event_not_allowed: () => 'explain says why',
  dependencies_unmet: () => 'run starts them, too',
  stale_attempt: ({ live_attempt }) => `task_status shows what attempt ${live_attempt} asks`,
  credential_missing: () => 'only your user can do that',
};
const adviceByCode = new Map<string, (facts: never) => string>(Object.entries(advice));

/** Commands that are tools here, by their names in our other words. */
const toolOfCommand: ReadonlyMap<string, string> = new Map([
  ['run', 'run'],
  ['execute', 'run'],
  ['respond', 'answer'],
  ['diff', 'diff'],
  ['merge', 'merge'],
  ['merge --force', 'merge with force: true'],
]);
const namedCommands: ReadonlySet<string> = new Set([
  ...['retry', 'discard', 'review', 'close', 'reopen', 'cancel'],
]);

const wordFor = (word: string): string =>
  namedCommands.has(word) ? `${word} (your user)` : (toolOfCommand.get(word) ?? word);

const notAllowedSchema = z.looseObject({
  task_id: z.string(),
  event: z.string(),
  state: z.string(),
  allowed: z.array(z.string()),
});

/** A refusal names what is allowed by the methods of the service. */
const withToolNames = (failure: McpFailure): McpFailure => {
  const { data } = notAllowedSchema.safeParse(failure.facts);
  if (failure.code !== 'event_not_allowed' || data === undefined) return failure;
  const allowed = data.allowed.map(wordFor);
  const facts = { ...data, event: toolOfCommand.get(data.event) ?? data.event, allowed };
  const known = facts as unknown as ErrorFacts['event_not_allowed'];
  return { ...failure, message: describeRefusal(refusal('event_not_allowed', known)), facts };
};

/** The failure with the tool that helps, if one does. */
export const withAdvice = (given: McpFailure): McpFailure => {
  const failure = withToolNames(given);
  const help = adviceByCode.get(failure.code)?.(failure.facts as never);
  return help === undefined ? failure : { ...failure, message: `${failure.message}; ${help}` };
};

const skipReasons: ReadonlyMap<string, string> = new Map([
  ['complete', 'it is complete'],
  ['no_role', 'it has no role; give run a role, or create_task the label role:engineer'],
  ['for_person', 'a person does it: tell your user'],
  ['approved', 'its work is approved; to run it again all the same, name it in task_ids'],
  ['already_running', 'it is running already; wait_for_task follows it'],
]);

const ranSchema = z.looseObject({
  skipped: z.array(z.looseObject({ reason: z.string(), code: z.string().optional() })),
});

/** The result of `run`, with reasons that name tools. */
export const skippedForAssistant = (given: unknown): unknown => {
  const { data: ran } = ranSchema.safeParse(given);
  if (ran === undefined) return given;
  const skipped = ran.skipped.map((each) => ({
    ...each,
    reason: skipReasons.get(each.code ?? '') ?? each.reason,
  }));
  return { ...ran, skipped };
};

const explainedSchema = z.looseObject({ allowed_events: z.array(z.string()) });

/** The result of `explain`: what is allowed as tools, and the rest apart. */
export const explainedForAssistant = (given: unknown, mayAnswer: boolean): unknown => {
  const { data } = explainedSchema.safeParse(given);
  if (data === undefined) return given;
  const { allowed_events, ...explained } = data;
  const isTool = (name: string): boolean =>
    toolOfCommand.has(name) && (name !== 'respond' || mayAnswer);
  return {
    ...explained,
    allowed_tools: allowed_events.filter(isTool).map((name) => toolOfCommand.get(name)),
    only_your_user: allowed_events.filter((name) => !isTool(name)),
  };
};

const conflictSchema = z.looseObject({
  status: z.literal('conflict'),
  branch: z.string(),
  moved_on: z.boolean().optional(),
  same_lines: z.boolean().optional(),
  rewritten: z.boolean().optional(),
  detached: z.boolean().optional(),
  merge_first: z
    .looseObject({ task_id: z.string(), attempt: z.int(), complete: z.boolean() })
    .optional(),
});

const wayOnAfter = ({
  branch,
  moved_on,
  same_lines,
  rewritten,
  detached,
  merge_first,
}: z.infer<typeof conflictSchema>) => {
  if (merge_first !== undefined) {
    const { task_id, attempt, complete } = merge_first;
    const force = complete ? '' : ', with force: true since it is not complete';
    return `merge attempt ${attempt} of ${task_id} first${force}; then call merge again`;
  }
  if (moved_on === true) return 'call merge again with squash: true';
  if (same_lines === true)
    return `a person decides which lines stay: tell your user to run git merge ${branch}`;
  if (rewritten === true) return `tell your user to run git merge ${branch}`;
  if (detached === true)
    return 'tell your user to check out the branch that the work goes to (git switch <branch>); then call merge again';
  return 'tell your user why; when nothing is in the way any more, call merge again';
};

/** The result of `merge`; after a conflict, with what to do. */
export const mergedForAssistant = (given: unknown): unknown => {
  const { data } = conflictSchema.safeParse(given);
  return data === undefined ? given : { ...data, to_go_on: wayOnAfter(data) };
};
