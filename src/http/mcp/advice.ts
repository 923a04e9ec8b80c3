import { z } from 'zod';
import type { ErrorCode, ErrorFacts } from '../../machines/errors.ts';
import type { McpFailure } from './backend.ts';

type Advice = { readonly [Code in ErrorCode]?: (facts: ErrorFacts[Code]) => string };

/** An assistant calls tools; the commands of our command line are for people. */
const advice: Advice = {
  task_not_found: () => 'list_tasks shows the tasks',
  already_running: () => 'wait_for_task follows it',
  event_not_allowed: () => 'explain says why',
  dependencies_unmet: () => 'run starts them, too',
  stale_attempt: ({ live_attempt }) => `task_status shows what attempt ${live_attempt} asks`,
  credential_missing: () => 'only your user can do that',
};
const adviceByCode = new Map<string, (facts: never) => string>(Object.entries(advice));

/** The failure with the tool that helps, if one does. */
export const withAdvice = (failure: McpFailure): McpFailure => {
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
