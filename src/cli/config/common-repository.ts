import type { Workspace } from '../../actors/workspace/port.ts';
import type { Config } from './schema/config-schema.ts';
import type { StoreChoice } from './store.ts';

export interface RepositoryCheck {
  readonly status: 'ok' | 'note' | 'problem';
  readonly detail: string;
}

/** Asks the repository that all servers reach; null: none is configured. */
export const checkRepository = async (
  { workspace: { repository } }: Config,
  { travel }: Workspace,
  { kind }: StoreChoice,
): Promise<RepositoryCheck | null> => {
  if (repository === null) return null;
  const unused = (why: string): RepositoryCheck => ({
    status: 'note',
    detail: `${repository} is not used: ${why}`,
  });
  if (travel === null) return unused('with workspace.mode shared there is no work to send');
  if (kind === 'sqlite') return unused('this server shares no store (store.url)');
  const problem = await travel.check();
  return problem === null
    ? { status: 'ok', detail: `${repository} can be read and written` }
    : {
        status: 'problem',
        detail: `${problem}; until then the work of agents does not go to other servers (workspace.repository)`,
      };
};
