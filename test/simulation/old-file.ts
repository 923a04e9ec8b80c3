import { createImports } from '../../src/actors/ledger/take-difference.ts';
import { atOnce } from './at-once.ts';
import type { World } from './world.ts';

/**
 * The file comes back as it was before a claim, as by `git checkout`, and another process imports
 * it: a task that an attempt works on must stay with it.
 */
export const createOldFile = ({ ledger, store, clock, invariants }: World): (() => void) => {
  const { db, table } = ledger;
  const imports = createImports(db, table);
  return () => {
    for (const { taskId } of store.tasks('pending')) {
      const issue = atOnce(db.ask(table.get(taskId)));
      if (issue?.status !== 'in_progress' || issue.assignee !== 'agent-server') continue;
      const { assignee, ...free } = issue;
      const before = Date.parse(issue.updated_at ?? '') || 0;
      const at = new Date(Math.max(clock.now(), before) + 1).toISOString();
      const imported = atOnce(
        db.ask(
          imports.takeLine(
            JSON.stringify({ ...free, description: `of ${at}`, status: 'open', updated_at: at }),
          ),
        ),
      );
      if (imported !== null) atOnce(store.commit({ entries: [], tasks: [imported.edit] }));
      const after = atOnce(db.ask(table.get(taskId)));
      if (after?.status !== 'in_progress' || after.assignee !== assignee)
        invariants.violated(`an import took ${taskId} from its attempt`);
    }
  };
};
