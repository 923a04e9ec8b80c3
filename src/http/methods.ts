import { setTimeout } from 'node:timers/promises';
import type { OfflineService } from '../actors/engine/queries/offline-tasks.ts';
import type { TaskQueries } from '../actors/engine/queries/task-queries.ts';
import type { RunGraphRequest } from '../actors/engine/service/run-graph.ts';
import type { TaskService } from '../actors/engine/service/task-service.ts';
import type { WorkflowService } from '../actors/workflows/workflow-host.ts';
import { requireRole } from '../machines/errors.ts';
import {
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
  parseParams,
  publishParamsSchema,
  replayParamsSchema,
  respondParamsSchema,
  retryParamsSchema,
  reviewParamsSchema,
  runOptions,
  runParamsSchema,
  taskParamsSchema,
  undoParamsSchema,
  updateParamsSchema,
  usageParamsSchema,
  workflowCancelParamsSchema,
  workflowListParamsSchema,
  workflowParamsSchema,
  workflowStartParamsSchema,
} from './wire.ts';

/** `gone` is aborted when who asked goes away. */
export type Method = (params: unknown, gone?: () => AbortSignal) => Promise<unknown>;

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
      ...{ ...item, priority, labels, dependsOn: depends_on, version: null },
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
  'workflow.start': async (params) => {
    const { product, thoroughness, steps, decides, verify, model, ...named } = parseParams(
      workflowStartParamsSchema,
      params,
    );
    return workflows.start({
      ...named,
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
  'workflow.retry': async (params) =>
    workflows.retry(parseParams(workflowParamsSchema, params).workflow_id),
  'workflow.cancel': async (params) => {
    const { workflow_id, reason } = parseParams(workflowCancelParamsSchema, params);
    return workflows.cancel(workflow_id, reason ?? null);
  },
});

export const createMethods = (
  service: TaskService,
  discovery: () => unknown,
  workflows: WorkflowService,
): Readonly<Record<string, Method>> => ({
  ...createCatalogueMethods(service),
  ...createWorkflowMethods(workflows),
  execute: async (params) => {
    const { task_id, task, role, options, request_id } = parseParams(executeParamsSchema, params);
    return service.execute({
      task: task_id ?? task ?? '',
      role: requireRole(role),
      options: runOptions(options),
      ...(request_id === undefined ? {} : { requestId: request_id }),
    });
  },
  run: async (params) => {
    const { task_ids, role, options, request_id, max_cost_usd, dry_run, ...chosen } = parseParams(
      runParamsSchema,
      params,
    );
    const request: RunGraphRequest = {
      ...chosen,
      options: runOptions(options),
      maxCostUsd: max_cost_usd,
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
  merge: async (params, gone) => {
    const { task_id, attempt, squash, force, verify } = parseParams(mergeParamsSchema, params);
    return service.merge({ taskId: task_id, attempt, squash, force, verify }, gone?.());
  },
  merge_many: async (params, gone) => {
    const given = parseParams(mergeManyParamsSchema, params);
    const { task_ids = [], all = false, dry_run, wait_seconds, ...how } = given;
    const request = { taskIds: task_ids, all, dryRun: dry_run, waitSeconds: wait_seconds, ...how };
    return service.mergeMany(request, gone?.());
  },
  update: async (params, gone) => {
    const { task_id, wait_seconds } = parseParams(updateParamsSchema, params);
    if (wait_seconds === undefined) return service.update(task_id, gone?.());
    const { attempt } = await service.status(task_id);
    const updated = service.update(task_id);
    // Who waits no longer is told by the log of the task.
    updated.catch(() => {});
    const testing = { task_id, attempt, status: 'testing' };
    return Promise.race([updated, setTimeout(wait_seconds * 1_000, testing, { ref: false })]);
  },
  undo: async (params, gone) => {
    const given = parseParams(undoParamsSchema, params);
    const { task_id, with_dependents = false, wait_seconds } = given;
    const request = { taskId: task_id, withDependents: with_dependents, waitSeconds: wait_seconds };
    return service.undo(request, gone?.());
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
        ...{ path, line: line ?? null, endLine: end_line ?? null, text },
      })),
    });
  },
  retry: async (params) => {
    const { task_id, reason, role, options } = parseParams(retryParamsSchema, params);
    return service.retry(
      task_id,
      role === undefined ? null : requireRole(role),
      options === undefined ? null : runOptions(options),
      reason ?? null,
    );
  },
});
