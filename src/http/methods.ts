import { setTimeout } from 'node:timers/promises';
import type { OfflineService } from '../actors/engine/queries/offline-tasks.ts';
import type { TaskQueries } from '../actors/engine/queries/task-queries.ts';
import type { RunGraphRequest } from '../actors/engine/service/run-graph.ts';
import type { TaskService } from '../actors/engine/service/task-service.ts';
import type { Audit, AuditLine } from '../actors/store/rows/audit-rows.ts';
import { type KeptToken, type Tokens, tokensAtMost } from '../actors/store/rows/token-rows.ts';
import type { WorkflowService } from '../actors/workflows/workflow-host.ts';
import { requireRole, ServiceError } from '../machines/errors.ts';
import { digestOf, secret } from './page-sessions.ts';
import type { Caller } from './people/callers.ts';
import type { Guard } from './people/guard.ts';
import { ownerName } from './people/names.ts';
import { needsOfMethod } from './people/rights.ts';
import {
  auditParamsSchema,
  changeParamsSchema,
  createParamsSchema,
  decisionsParamsSchema,
  dependencyParamsSchema,
  diffPartParamsSchema,
  discardParamsSchema,
  editParamsSchema,
  executeParamsSchema,
  historyParamsSchema,
  importIssuesParamsSchema,
  importParamsSchema,
  listParamsSchema,
  mergeManyParamsSchema,
  mergeParamsSchema,
  noParamsSchema,
  parseParams,
  publishParamsSchema,
  replayParamsSchema,
  respondParamsSchema,
  retryParamsSchema,
  reviewParamsSchema,
  runOptions,
  runParamsSchema,
  taskParamsSchema,
  tokenCreateParamsSchema,
  tokenParamsSchema,
  undoParamsSchema,
  updateParamsSchema,
  usageParamsSchema,
  workflowCancelParamsSchema,
  workflowListParamsSchema,
  workflowParamsSchema,
  workflowStartParamsSchema,
} from './wire.ts';

export interface MethodCall {
  /** Aborted when who asked goes away. */
  readonly gone?: (() => AbortSignal) | undefined;
  readonly caller?: Caller | undefined;
}

export type Method = (params: unknown, call?: MethodCall) => Promise<unknown>;

/** Carries out each method for those with the right for it. */
export const guardMethods = (
  methods: Readonly<Record<string, Method>>,
  guard: Guard,
): Readonly<Record<string, Method>> =>
  Object.fromEntries(
    Object.entries(methods).map(([name, method]): readonly [string, Method] => [
      name,
      async (params, call) => {
        const needs = needsOfMethod(name, params);
        // What is not in the table is for the owner alone.
        if (call?.caller === undefined || (needs === undefined && !call.caller.isOwner))
          throw new ServiceError('forbidden', {
            needs: 'admin',
            name: call?.caller?.name ?? 'nobody',
            rights: call?.caller?.rights ?? 'none',
          });
        const asked = { action: name, needs: needs ?? 'admin', params };
        return guard.carryOut(call.caller, asked, () => method(params, call));
      },
    ]),
  );

const createCatalogueMethods = (catalogue: TaskQueries): Readonly<Record<string, Method>> => ({
  status: async (params) => catalogue.status(parseParams(taskParamsSchema, params).task_id),
  create: async (params) => {
    const { description, title, dependencies, priority, labels, attachments } = parseParams(
      createParamsSchema,
      params,
    );
    return catalogue.create({
      description,
      ...(title === undefined ? {} : { title }),
      ...(dependencies === undefined ? {} : { dependencies }),
      ...(priority === undefined ? {} : { priority }),
      ...(labels === undefined ? {} : { labels }),
      ...(attachments === undefined ? {} : { attachments }),
    });
  },
  import: async (params) => {
    const { items, dry_run = false } = parseParams(importParamsSchema, params);
    const wanted = items.map(({ priority = 2, labels = [], depends_on = [], ...item }) => ({
      ...item,
      priority,
      labels,
      dependsOn: depends_on,
      version: null,
    }));
    return catalogue.import(wanted, { dryRun: dry_run, again: true });
  },
  list: async (params) => {
    const { id, status, role, label, order, limit, cursor } = parseParams(listParamsSchema, params);
    return catalogue.list({
      ...(id === undefined ? {} : { id }),
      ...(status === undefined ? {} : { status }),
      ...(role === undefined ? {} : { role: requireRole(role) }),
      ...(label === undefined ? {} : { label }),
      ...(order === undefined ? {} : { order }),
      ...(limit === undefined ? {} : { limit }),
      ...(cursor === undefined ? {} : { cursor }),
    });
  },
  add_dependency: async (params) => {
    const { task_id, depends_on } = parseParams(dependencyParamsSchema, params);
    return catalogue.addDependency(task_id, depends_on);
  },
  remove_dependency: async (params) => {
    const { task_id, depends_on } = parseParams(dependencyParamsSchema, params);
    return catalogue.removeDependency(task_id, depends_on);
  },
  edit: async (params) => {
    const { task_id, title, description, priority, labels } = parseParams(editParamsSchema, params);
    return catalogue.edit(task_id, {
      ...(title === undefined ? {} : { title }),
      ...(description === undefined ? {} : { description }),
      ...(priority === undefined ? {} : { priority }),
      ...(labels === undefined ? {} : { labels }),
    });
  },
  delete: async (params) => catalogue.delete(parseParams(taskParamsSchema, params).task_id),
  decisions: async (params) =>
    catalogue.decisions(parseParams(decisionsParamsSchema, params).limit ?? null),
  usage: async (params) => catalogue.usage(parseParams(usageParamsSchema, params).since ?? null),
  replay: async (params) => {
    const { task_id, at_seq } = parseParams(replayParamsSchema, params);
    return catalogue.replay({ taskId: task_id, at: at_seq ?? null });
  },
  history: async (params) => {
    const { task_id, after_seq, limit, kept } = parseParams(historyParamsSchema, params);
    return catalogue.history({
      taskId: task_id,
      ...(after_seq === undefined ? {} : { after: after_seq }),
      ...(limit === undefined ? {} : { limit }),
      ...(kept === undefined ? {} : { kept }),
    });
  },
});

const createChange =
  (change: (taskId: string, reason: string | null) => Promise<unknown>): Method =>
  async (params) => {
    const { task_id, reason } = parseParams(changeParamsSchema, params);
    return change(task_id, reason ?? null);
  };

export const createOfflineMethods = (
  service: OfflineService,
): Readonly<Record<string, Method>> => ({
  ...createCatalogueMethods(service),
  close: createChange(service.close),
  reopen: createChange(service.reopen),
});

const createWorkflowMethods = (workflows: WorkflowService): Readonly<Record<string, Method>> => ({
  'workflow.start': async (params, call) => {
    const { product, thoroughness, steps, decides, verify, model, ...named } = parseParams(
      workflowStartParamsSchema,
      params,
    );
    return workflows.start({
      ...named,
      by: call?.caller?.name,
      ...(product === undefined ? {} : { product }),
      ...(thoroughness === undefined ? {} : { thoroughness }),
      ...(steps === undefined ? {} : { steps }),
      ...(decides === undefined ? {} : { decides }),
      ...(verify === undefined ? {} : { verify }),
      ...(model === undefined ? {} : { model }),
    });
  },
  'workflow.list': async (params) => {
    const { limit, cursor } = parseParams(workflowListParamsSchema, params);
    return workflows.list({
      ...(limit === undefined ? {} : { limit }),
      ...(cursor === undefined ? {} : { cursor }),
    });
  },
  'workflow.show': async (params) =>
    workflows.show(parseParams(workflowParamsSchema, params).workflow_id),
  'workflow.retry': async (params, call) =>
    workflows.retry(parseParams(workflowParamsSchema, params).workflow_id, call?.caller?.name),
  'workflow.cancel': async (params) => {
    const { workflow_id, reason } = parseParams(workflowCancelParamsSchema, params);
    return workflows.cancel(workflow_id, reason ?? null);
  },
});

export const createMethods = (
  service: TaskService,
  discovery: () => unknown,
  workflows: WorkflowService,
  people: PeoplePorts,
): Readonly<Record<string, Method>> => ({
  ...createPeopleMethods(people),
  ...createCatalogueMethods(service),
  ...createWorkflowMethods(workflows),
  execute: async (params, call) => {
    const { task_id, task, role, options, request_id } = parseParams(executeParamsSchema, params);
    return service.execute({
      task: task_id ?? task ?? '',
      role: requireRole(role),
      options: runOptions(options),
      by: call?.caller?.name,
      ...(request_id === undefined ? {} : { requestId: request_id }),
    });
  },
  run: async (params, call) => {
    const { task_ids, role, options, request_id, max_cost_usd, dry_run, ...chosen } = parseParams(
      runParamsSchema,
      params,
    );
    const request: RunGraphRequest = {
      ...chosen,
      options: runOptions(options),
      maxCostUsd: max_cost_usd,
      by: call?.caller?.name,
      ...(task_ids === undefined ? {} : { taskIds: task_ids }),
      ...(role === undefined ? {} : { role: requireRole(role) }),
      ...(request_id === undefined ? {} : { requestId: request_id }),
    };
    return dry_run === true
      ? { accepted: [], ...(await service.plan(request)) }
      : service.run(request);
  },
  discovery: async () => discovery(),
  diff: async (params) => {
    const { task_id, attempt, part } = parseParams(diffPartParamsSchema, params);
    return service.diff(task_id, attempt ?? null, part);
  },
  merge: async (params, call) => {
    const { task_id, attempt, squash, force, verify } = parseParams(mergeParamsSchema, params);
    const by = call?.caller?.name;
    return service.merge({ taskId: task_id, attempt, squash, force, verify, by }, call?.gone?.());
  },
  merge_many: async (params, call) => {
    const given = parseParams(mergeManyParamsSchema, params);
    const { task_ids = [], all = false, dry_run, wait_seconds, ...how } = given;
    const request = {
      taskIds: task_ids,
      all,
      dryRun: dry_run,
      waitSeconds: wait_seconds,
      ...how,
      by: call?.caller?.name,
    };
    return service.mergeMany(request, call?.gone?.());
  },
  update: async (params, call) => {
    const { task_id, wait_seconds } = parseParams(updateParamsSchema, params);
    if (wait_seconds === undefined) return service.update(task_id, call?.gone?.());
    const { attempt } = await service.status(task_id);
    const updated = service.update(task_id);
    // Who waits no longer is told by the log of the task.
    updated.catch(() => {});
    const testing = { task_id, attempt, status: 'testing' };
    return Promise.race([updated, setTimeout(wait_seconds * 1_000, testing, { ref: false })]);
  },
  undo: async (params, call) => {
    const given = parseParams(undoParamsSchema, params);
    const { task_id, with_dependents = false, wait_seconds } = given;
    const request = { taskId: task_id, withDependents: with_dependents, waitSeconds: wait_seconds };
    return service.undo(request, call?.gone?.());
  },
  publish: async (params) => {
    const { task_id, ...how } = parseParams(publishParamsSchema, params);
    return service.publish({ taskId: task_id, ...how });
  },
  import_issues: async (params) => {
    const given = parseParams(importIssuesParamsSchema, params);
    const { labels = [], milestone = null, dry_run = false } = given;
    return service.importIssues({ labels, milestone, dryRun: dry_run });
  },
  sources: async () => service.sources(),
  pull_request: async (params) =>
    service.pullRequest(parseParams(taskParamsSchema, params).task_id),
  discard: async (params) => {
    const { task_id, attempt, reason } = parseParams(discardParamsSchema, params);
    return service.discard(task_id, attempt ?? null, reason ?? null);
  },
  explain: async (params) => {
    const { task_id } = parseParams(taskParamsSchema, params);
    return (await workflows.explain(task_id)) ?? service.explain(task_id);
  },
  close: createChange(service.close),
  reopen: createChange(service.reopen),
  cancel: createChange(service.cancel),
  respond: async (params) => {
    const { task_id, attempt, input_id, text, decision } = parseParams(respondParamsSchema, params);
    return service.respond(task_id, attempt, {
      type: 'respond',
      inputId: input_id,
      text: text ?? null,
      decision: decision ?? null,
    });
  },
  review: async (params) => {
    const { task_id, attempt, verdict, comments } = parseParams(reviewParamsSchema, params);
    return service.review(task_id, {
      verdict,
      attempt: attempt ?? null,
      comments: comments.map(({ path, line, end_line, text }) => ({
        path,
        line: line ?? null,
        endLine: end_line ?? null,
        text,
      })),
    });
  },
  retry: async (params, call) => {
    const { task_id, reason, role, options } = parseParams(retryParamsSchema, params);
    return service.retry(
      task_id,
      role === undefined ? null : requireRole(role),
      options === undefined ? null : runOptions(options),
      reason ?? null,
      call?.caller?.name,
    );
  },
});

const tokenForm = /^[a-z0-9][a-z0-9._@-]{0,63}$/;
const badName = (problem: string): ServiceError =>
  new ServiceError('invalid_params', { fields: [{ path: 'name', problem }] });

export interface PeoplePorts {
  readonly tokens: Tokens;
  readonly audit: Audit;
  /** Epoch ms. */
  readonly now: () => number;
  /** Ends the streams of a token that is revoked, at every server. */
  readonly onRevoked: () => void;
}

/** Tokens of people and clients, and what they did. A token is shown once, and kept as its digest. */
const createPeopleMethods = ({
  tokens,
  audit,
  now,
  onRevoked,
}: PeoplePorts): Readonly<Record<string, Method>> => ({
  'token.create': async (params) => {
    const { name, rights, expires_seconds } = parseParams(tokenCreateParamsSchema, params);
    if (!tokenForm.test(name) || name === ownerName)
      throw badName('expected 1 to 64 of a-z, 0-9 and . _ @ -, and not owner');
    const token = `ats_${secret()}`;
    const createdAt = now();
    const expiresAt = expires_seconds === undefined ? null : createdAt + expires_seconds * 1_000;
    const kept = { name, rights, digest: digestOf(token), createdAt, expiresAt };
    const added = await tokens.add(kept);
    if (added === 'taken') throw badName(`is taken: revoke the token ${name} first`);
    if (added === 'full') throw badName(`there are ${tokensAtMost} tokens: revoke some`);
    return { ...tokenView(kept), token };
  },
  'token.list': async (params) => {
    parseParams(noParamsSchema, params);
    return { tokens: (await tokens.list()).map(tokenView) };
  },
  'token.revoke': async (params) => {
    const { name } = parseParams(tokenParamsSchema, params);
    if (!(await tokens.remove(name))) throw badName('is that of no token');
    onRevoked();
    return { name };
  },
  audit: async (params) => {
    const given = parseParams(auditParamsSchema, params);
    const { since, task_id: taskId = null, after_seq: after = 0, limit = 200 } = given;
    await audit.flush();
    // Read first: lines that come meanwhile are beyond it.
    const end = await audit.end();
    const lines = await audit.page({
      since: since === undefined ? 0 : Date.parse(since),
      taskId,
      after,
      limit,
    });
    const last = lines.at(-1);
    return {
      lines: lines.map(auditLineView),
      ...(lines.length < limit || last === undefined ? {} : { next_after: last.seq }),
      ...(end === null ? {} : { end }),
    };
  },
});

const isoOf = (at: number): string => new Date(at).toISOString();

const tokenView = ({ name, rights, createdAt, expiresAt }: KeptToken) => ({
  name,
  rights,
  created_at: isoOf(createdAt),
  ...(expiresAt === null ? {} : { expires_at: isoOf(expiresAt) }),
});

const auditLineView = ({ taskId, about, at, ...line }: AuditLine) => ({
  seq: line.seq,
  at: isoOf(at),
  name: line.name,
  via: line.via,
  address: line.address,
  action: line.action,
  ...(taskId === null ? {} : { task_id: taskId }),
  ...(about === null ? {} : { about }),
  outcome: line.outcome,
  id: line.id,
  previous: line.previous,
  hash: line.hash,
});
