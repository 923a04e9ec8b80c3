import type { Audit, AuditFacts } from '../../actors/store/rows/audit-rows.ts';
import { isServiceError, type Right, ServiceError } from '../../machines/errors.ts';
import { isJsonObject } from '../../machines/json.ts';
import { parseTaskId } from '../../machines/task.ts';
import { A2aError } from '../a2a/errors.ts';
import { type Caller, createThrottle } from './callers.ts';
import { holds, tokenRights } from './rights.ts';

type Asker = Pick<Caller, 'name' | 'rights' | 'via' | 'address'>;

/**
 * Carries out what people and clients ask for: those with the right for it, and with a line in the
 * audit log that is there no later than the change.
 */
export interface Guard {
  /** @throws forbidden, and what `work` throws */
  carryOut<Result>(
    caller: Asker,
    asked: { readonly action: string; readonly needs: Right; readonly params: unknown },
    work: () => Promise<Result>,
  ): Promise<Result>;
  /** The error for who lacks a right; it is in the log. */
  refuse(caller: Asker, action: string, needs: Right): Promise<ServiceError>;
  /** Writes that somebody logged in or out. */
  note(caller: Asker, action: string): Promise<void>;
}

/** A line for each; a request about more has lines for these. */
const tasksAtMost = 1_000;

const idIn = (value: unknown): string[] => {
  // A run of A2A is `bd-a1~4`.
  const id = typeof value === 'string' ? parseTaskId(value.replace(/~\d{1,9}$/, '')) : null;
  return id === null ? [] : [id];
};

/** The ids of tasks in parameters and results; what is no id is left out, since it may be any text. */
const tasksIn = (given: unknown): ReadonlySet<string> => {
  const found = new Set<string>();
  const add = (value: unknown): void => {
    for (const id of idIn(isJsonObject(value) ? value['task_id'] : value))
      if (found.size < tasksAtMost) found.add(id);
  };
  const look = (value: unknown): void => {
    if (!isJsonObject(value)) return;
    for (const key of ['task_id', 'taskId', 'id']) add(value[key]);
    for (const key of ['task_ids', 'accepted', 'landed', 'items']) {
      const list = value[key];
      if (Array.isArray(list)) list.slice(0, tasksAtMost).forEach(add);
    }
    look(value['message']);
    look(value['task']);
  };
  look(given);
  return found;
};

/** Text that every database keeps as it is: else the hash of its line would be that of another one. */
const plainText = /^[\w.:-]{1,100}$/;

/** The name of a token, or the id of a workflow. */
const aboutIn = (given: unknown): string | null => {
  if (!isJsonObject(given)) return null;
  const { name, rights, workflow_id: workflow } = given;
  if (typeof workflow === 'string') return plainText.test(workflow) ? workflow : null;
  if (typeof name !== 'string' || !/^[a-z0-9][a-z0-9._@-]{0,63}$/.test(name)) return null;
  return tokenRights.some((known) => known === rights) ? `${name} (${rights})` : name;
};

const codeOf = (error: unknown): string => {
  if (isServiceError(error)) return error.code;
  return error instanceof A2aError ? error.reason.toLowerCase() : 'internal';
};

export const createGuard = (audit: Audit, now: () => number): Guard => {
  const throttle = createThrottle(() => performance.now());
  const factsOf = (
    { name, via, address }: Asker,
    { action, about = null, taskId = null }: Partial<AuditFacts> & Pick<AuditFacts, 'action'>,
    outcome: string,
  ): AuditFacts => ({ at: now(), name, via, address, action, taskId, about, outcome });

  const refuse: Guard['refuse'] = async (caller, action, needs) => {
    const { name, rights } = caller;
    // Who lacks a right cannot fill the log, which nobody empties.
    if (!throttle.failed(name).over) {
      audit.add(factsOf(caller, { action, about: `needs ${needs}` }, 'forbidden'));
      await audit.flush();
    }
    return new ServiceError('forbidden', { needs, name, rights });
  };

  return {
    refuse,
    note: async (caller, action) => {
      audit.add(factsOf(caller, { action }, 'done'));
      await audit.flush();
    },
    carryOut: async (caller, { action, needs, params }, work) => {
      if (!holds(caller.rights, needs)) throw await refuse(caller, action, needs);
      if (needs === 'read') return work();
      const tasks = tasksIn(params);
      const about =
        action.startsWith('token.') || action.startsWith('workflow.') ? aboutIn(params) : null;
      const ids = tasks.size === 0 ? [null] : [...tasks];
      const lines = ids.map((taskId) =>
        audit.add(factsOf(caller, { action, about, taskId }, 'allowed')),
      );
      try {
        const result = await work();
        for (const taskId of tasksIn(result))
          if (!tasks.has(taskId)) audit.add(factsOf(caller, { action, taskId }, 'done'));
        // What was made since is named by the next write.
        if (lines.some((line) => line.isWaiting())) await audit.flush();
        return result;
      } catch (error) {
        for (const line of lines) line.ended(codeOf(error));
        throw error;
      }
    },
  };
};
