import { openBare } from './bare.ts';

export interface Person {
  readonly login: string;
  readonly type: 'User' | 'Bot';
  readonly association: string;
  readonly permission: 'admin' | 'write' | 'read' | 'none';
  /** Gitea: may write issues, and not push. */
  readonly writesIssues?: boolean;
}

export interface Pull {
  readonly number: number;
  readonly head: string;
  base: string;
  title: string;
  body: string;
  draft: boolean;
  state: 'open' | 'closed';
  /** The commit of the base that has it. */
  merged: string | null;
  /** Of the head, when it was merged or closed. */
  lastSha: string;
  autoMerge: { readonly sha: string; readonly method: string; readonly by: string } | null;
}

export interface Said {
  readonly id: number;
  readonly number: number;
  readonly kind: 'plain' | 'line' | 'review';
  readonly user: string;
  text: string;
  readonly state?: string;
  readonly path?: string;
  readonly line?: number;
  readonly replyTo?: number | undefined;
  /** Of the first comment of a thread. */
  isResolved?: boolean;
  readonly at: string;
}

export interface Run {
  readonly id: number;
  readonly sha: string;
  readonly name: string;
  status: string;
  conclusion: string | null;
  readonly app: string;
  readonly output?: { readonly title?: string; readonly summary?: string };
  readonly annotations: readonly Readonly<Record<string, unknown>>[];
  readonly steps: readonly Readonly<Record<string, unknown>>[];
  readonly log: string | null;
}

export interface Status {
  readonly id: number;
  readonly sha: string;
  readonly context: string;
  readonly state: string;
  readonly description?: string;
}

export interface Issue {
  readonly number: number;
  title: string;
  text: string;
  labels: readonly string[];
  milestone?: string | null;
  /** No more in this repository. */
  gone?: 'deleted' | 'transferred';
  state: 'open' | 'closed';
  state_reason: string | null;
  blockedBy: readonly number[];
}

/** `us`: the account of the token. */
export const us = 'agent-bot';
export const token = 'ghp_0123456789abcdefToken';

const start = Date.parse('2026-11-01T00:00:00Z');

export const createState = (project: string) => {
  let last = 0;
  const state = {
    bare: openBare(project),
    owner: 'acme',
    name: 'shop',
    /** What the repository was called before. */
    formerly: [] as string[],
    archived: false,
    /** How long an answer of its API takes. */
    latencyMs: (): number => 0,
    /** Another address of its git. */
    gitMovedTo: null as string | null,
    maySee: true,
    mayPush: true,
    allowsAutoMerge: true,
    mayStopAutoMerge: true,
    /** `on` and `off`, each with the head at that time. */
    autoMerges: [] as string[],
    hasDependencies: true,
    hasGraphQl: true,
    /** A token that reads pull requests may not. */
    mayResolve: true,
    /** Gitea 1.27 and newer. */
    hasReplies: true,
    isApp: false,
    /** Gitea: our account administers the repository. */
    mayAskPermissions: true,
    protectedBranches: new Map<string, readonly string[]>(),
    people: new Map<string, Person>(),
    pulls: [] as Pull[],
    said: [] as Said[],
    runs: [] as Run[],
    statuses: [] as Status[],
    issues: [] as Issue[],
    nextNumber: (): number => state.pulls.length + state.issues.length + 1,
    nextId: (): number => {
      last += 1;
      return 1_000 + last;
    },
    /** Each is later than the one before. */
    time: (): string => {
      last += 1;
      return new Date(start + last * 1_000).toISOString().replace('.000', '');
    },
    person: (login: string): Person =>
      state.people.get(login) ?? {
        ...{ login, type: 'User', association: 'NONE', permission: 'none' },
      },
  };
  const add = (person: Person) => state.people.set(person.login, person);
  add({ login: us, type: 'User', association: 'COLLABORATOR', permission: 'write' });
  add({ login: 'olga', type: 'User', association: 'OWNER', permission: 'admin' });
  add({ login: 'mary', type: 'User', association: 'MEMBER', permission: 'write' });
  add({ login: 'rita', type: 'User', association: 'MEMBER', permission: 'read' });
  add({ login: 'carl', type: 'User', association: 'CONTRIBUTOR', permission: 'write' });
  add({ login: 'robo[bot]', type: 'Bot', association: 'NONE', permission: 'none' });
  return state;
};

export type State = ReturnType<typeof createState>;
