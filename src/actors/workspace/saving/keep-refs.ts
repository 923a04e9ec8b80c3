import { closeSync } from 'node:fs';
import { join } from 'node:path';
import { isAtPlace } from '../../files/link-places.ts';
import { openFolder } from '../folders/handles.ts';
import { createNameRules, shownName, textOf } from '../folders/names.ts';
import { isGone } from '../folders/walk.ts';
import { keepBlob } from '../git/blobs.ts';
import { commitTree, findObjects, moveBranch } from '../git/commits.ts';
import { type Git, GitError, reasonIn, requiredLine, requireGit } from '../git/git.ts';
import type { GitDirs } from '../git/git-dirs.ts';
import { protectedPlaces } from '../git/obeyed-places.ts';
import type { LeftOut, WorkRecord } from '../git/work-records.ts';
import {
  type AgentGitReading,
  type AgentObject,
  type AgentRef,
  entriesOfTree,
  partsOfCommit,
  readAgentGit,
} from './agent-refs.ts';
import { type IndexChange, indexRecords } from './snapshot-job.ts';

const mostRefs = 50;
const mostCommits = 5_000;
const mostFiles = 10_000;
const bytesAtMost = 256 * 1024 * 1024;
const mostNames = 100;
const mostTags = 10;

type Files = ReadonlyMap<string, { readonly mode: string; readonly oid: string }>;

/** The files of a tree that the repository has; folders, too, when asked. Names are latin1. */
const filesIn = async (git: Git, tree: string, folders = false): Promise<Files> => {
  const args = ['ls-tree', '-r', ...(folders ? ['-t'] : []), '-z', '--full-tree', tree];
  const said = (await requireGit('a tree cannot be read', git(args))).toString('latin1');
  return new Map(
    said.split('\0').flatMap((line) => {
      const [about = '', path] = line.split('\t', 2);
      const [mode = '', , oid = ''] = about.split(' ');
      return path === undefined ? [] : [[path, { mode, oid }] as const];
    }),
  );
};

const isFolder = (mode: string): boolean => /^0?40000$/.test(mode);

/** The files of the agent's tree; what is as in the base is left out, and named by `same`. */
const readTree = async (
  git: Git,
  agent: AgentGitReading,
  base: Files,
  tree: AgentObject,
  format: Parameters<typeof entriesOfTree>[1],
) => {
  const files = new Map<string, { mode: string; oid: string }>();
  const same: string[] = [];
  const folders: (readonly [string, AgentObject])[] = [['', tree]];
  for (let next = folders.pop(); next !== undefined; next = folders.pop()) {
    const [parent, object] = next;
    for (const { mode, name, oid } of entriesOfTree(object, format)) {
      const path = parent + name;
      if (base.get(path)?.oid === oid && isFolder(mode)) same.push(`${path}/`);
      else if (!isFolder(mode)) files.set(path, { mode, oid });
      else {
        const own = agent.object(oid);
        if (own !== null) folders.push([`${path}/`, own]);
        else
          for (const [below, file] of await filesIn(git, oid)) files.set(`${path}/${below}`, file);
      }
      if (files.size > mostFiles) throw new GitError(`it has more than ${mostFiles} files`);
    }
  }
  return { files, same };
};

const changesFrom = (
  base: Files,
  { files, same }: Awaited<ReturnType<typeof readTree>>,
): readonly IndexChange[] => {
  const isSame = (path: string): boolean => same.some((folder) => path.startsWith(folder));
  const gone = [...base].filter(
    ([path, { mode }]) => !isFolder(mode) && !files.has(path) && !isSame(path),
  );
  const changed = [...files].filter(([path, { mode, oid }]) => {
    const before = base.get(path);
    return before?.oid !== oid || before.mode !== mode;
  });
  return [
    ...gone.map(([path]) => ({ path, to: null })),
    ...changed.map(([path, to]) => ({ path, to })),
  ];
};

/** `fix/x` → `fix-x`. A number alone would read as a branch of the attempt. */
const slugOf = (name: string): string => {
  const slug = textOf(name)
    .replace(/[^\w-]+/g, '-')
    .replace(/^-+|(?<!-)-+$/g, '')
    .slice(0, 60);
  return /^\d*$/.test(slug) ? `ref-${slug}` : slug;
};

export interface KeptRefs {
  readonly left: readonly LeftOut[];
  readonly notes: readonly string[];
  readonly kept: readonly { readonly branch: string; readonly commit: string }[];
}

const nothingKept: KeptRefs = { left: [], notes: [], kept: [] };

const createKeeping = async (
  dirs: GitDirs,
  record: WorkRecord,
  savedTree: string,
  agent: AgentGitReading,
) => {
  const { git, repository, objects, temporary } = dirs;
  const { format } = repository;
  const { task_id, attempt, role, base, withheld } = record;
  const files = await filesIn(git, base, true);
  const saved = await filesIn(git, savedTree);
  const rulesOf = createNameRules();
  const places = (await protectedPlaces(dirs, base)).flatMap(({ path, protection }) =>
    protection === 'held' ? [Buffer.from(path).toString('latin1')] : [],
  );
  /** The folder began without these changes: nobody made them again. */
  const begunWithout = new Set(withheld.map(({ path }) => path));
  const isHeld = ({ path, to }: IndexChange): boolean =>
    to?.mode === '160000' ||
    isAtPlace(places, path) ||
    path.split('/').some((part) => {
      const { isRepository, isRefused, protection } = rulesOf(part);
      return isRepository || isRefused || protection === 'held';
    });
  let bytesLeft = bytesAtMost;

  const put = (changes: readonly IndexChange[]): void => {
    for (const { to } of changes) {
      const blob = to === null ? null : agent.object(to.oid);
      if (to === null || blob === null) continue;
      bytesLeft -= blob.whole.length;
      if (bytesLeft < 0) throw new GitError(`it has more than ${bytesAtMost / 1024 ** 2} MiB`);
      keepBlob(objects, to.oid, blob.whole);
    }
  };

  const treeWith = async (changes: readonly IndexChange[]): Promise<string> => {
    const env = { GIT_INDEX_FILE: join(temporary, 'refs-index') };
    await requireGit('its base cannot be read', git(['read-tree', base], { env }));
    const input = indexRecords(changes, format);
    const put = await git(['update-index', '-z', '--index-info'], { input, env });
    // Git leaves some names out and still exits with 0.
    if (!put.ok || put.stderr.includes('Ignoring path'))
      throw new GitError('git refuses a name in it');
    return requiredLine('its tree cannot be written', git(['write-tree'], { env }));
  };

  const branchFor = async (name: string, tree: string, message: string) => {
    for (let n = 1; n <= mostNames; n += 1) {
      const branch = `agent/${task_id}/${attempt}-${slugOf(name)}${n === 1 ? '' : `-${n}`}`;
      const ref = `refs/heads/${branch}`;
      const [tip, tipTree, parent] = await findObjects(dirs, [
        `${ref}^{commit}`,
        `${ref}^{tree}`,
        `${ref}^`,
      ]);
      // Kept before, and interrupted before the record was written.
      if (tip !== null && tipTree === tree && parent === base) return { branch, commit: tip };
      if (tip !== null) continue;
      const commit = await commitTree(dirs, { tree, parents: [base], message, role });
      const made = await moveBranch(dirs, branch, commit, null);
      if (made.ok) return { branch, commit };
      throw new GitError(reasonIn(made.stderr));
    }
    throw new GitError(`there are ${mostNames} branches of this name`);
  };

  return async ({ name, oid }: AgentRef): Promise<KeptRefs> => {
    const commit = agent.object(oid);
    if (commit === null) throw new GitError('its objects are packed, or too large');
    if (commit.type !== 'commit') throw new GitError('it is no commit');
    // Their files are named after commits: a branch with them would remove all other files.
    if (name.startsWith('refs/notes/')) throw new GitError('notes on commits are not saved');
    const { tree, parents, message } = partsOfCommit(commit);
    const top = agent.object(tree);
    // Untracked files of a stash are in a commit of their own.
    const untracked = name.startsWith('stash@') ? agent.object(parents[2] ?? '') : null;
    const beside = untracked === null ? null : agent.object(partsOfCommit(untracked).tree);
    const read =
      top === null
        ? { files: new Map(await filesIn(git, tree)), same: [] }
        : await readTree(git, agent, files, top, format);
    if (beside !== null)
      for (const [path, file] of (await readTree(git, agent, new Map(), beside, format)).files)
        read.files.set(path, file);
    const changes = changesFrom(files, read).filter(({ path }) => !begunWithout.has(path));
    const more = changes.filter(({ path, to }) => saved.get(path)?.oid !== to?.oid);
    if (more.length === 0) return nothingKept;
    const held = more.filter(isHeld).map(({ path }) => path);
    const shown = shownName(name);
    const heldLeft = held.map((path) => ({
      path: textOf(path),
      ref: textOf(name),
      reason: 'other programs run or trust it, so agents may not change it',
    }));
    const heldNotes = held.map(
      (path) => `${shownName(path)} of ${shown} was not saved: other programs run or trust it`,
    );
    if (held.length === more.length) return { left: heldLeft, notes: heldNotes, kept: [] };
    const free = changes.filter((change) => !isHeld(change));
    put(free);
    const trailers = `Task: ${task_id}\nAttempt: ${attempt}\nRole: ${role}\n`;
    const text = `${message.slice(0, 10_000).trimEnd() || shown}\n\n${trailers}`;
    const made = await branchFor(name, await treeWith(free), text);
    return {
      left: [{ ref: textOf(name), reason: `it is on the branch ${made.branch}` }, ...heldLeft],
      notes: [`What the agent had on ${shown} is on the branch ${made.branch}`, ...heldNotes],
      kept: [made],
    };
  };
};

/** All commits that the agent's HEAD has: its work went on from them. */
const reachedFromHead = (agent: AgentGitReading): ReadonlySet<string> => {
  const reached = new Set<string>();
  const next = agent.head === null ? [] : [agent.head];
  for (let oid = next.pop(); oid !== undefined && reached.size < mostCommits; oid = next.pop()) {
    const commit = reached.has(oid) ? null : agent.object(oid);
    if (commit?.type !== 'commit') continue;
    reached.add(oid);
    next.push(...partsOfCommit(commit).parents);
  }
  return reached;
};

/** An annotated tag names another object, which may be a tag. */
const peeled = (agent: AgentGitReading, { name, oid: first }: AgentRef): AgentRef => {
  let oid = first;
  for (let depth = 0; depth < mostTags; depth += 1) {
    const object = agent.object(oid);
    if (object?.type !== 'tag') break;
    oid = /^object ([0-9a-f]+)\n/.exec(object.content.toString('latin1'))?.[1] ?? oid;
  }
  return { name, oid };
};

/**
 * Keeps what an agent committed elsewhere than in its folder: on other branches, tags, stashes, other
 * refs and detached commits of its own git. Each is one commit on a branch beside the attempt's, with what it
 * changes and the saved work does not have; or it is named with the reason.
 */
export const keepAgentRefs = async (
  dirs: GitDirs,
  record: WorkRecord,
  agentGit: string,
  savedTree: string,
): Promise<KeptRefs> => {
  let root: number;
  try {
    root = openFolder(agentGit);
  } catch (error) {
    if (!isGone(error)) throw error;
    return nothingKept;
  }
  try {
    const agent = readAgentGit(root, dirs.repository.format);
    const reached = reachedFromHead(agent);
    const refs = agent.refs
      .map((ref) => peeled(agent, ref))
      .filter(({ oid }, at, all) => all.findIndex((each) => each.oid === oid) === at)
      .filter(({ oid }) => !reached.has(oid));
    const known = await findObjects(
      dirs,
      refs.map(({ oid }) => oid),
    );
    // What the repository has is no work of this agent.
    const own = refs.filter((_, at) => known[at] === null);
    if (own.length === 0) return nothingKept;
    const keep = await createKeeping(dirs, record, savedTree, agent);
    const all: KeptRefs[] = [];
    for (const [at, ref] of own.entries()) {
      const leftOut = (reason: string): KeptRefs => ({
        left: [{ ref: textOf(ref.name), reason }],
        notes: [`What the agent had on ${shownName(ref.name)} was not saved: ${reason}`],
        kept: [],
      });
      if (at >= mostRefs) all.push(leftOut(`an attempt keeps at most ${mostRefs} of them`));
      else
        all.push(
          await keep(ref).catch((error: unknown) => {
            if (error instanceof GitError) return leftOut(error.message);
            throw error;
          }),
        );
    }
    return {
      left: all.flatMap(({ left }) => left),
      notes: all.flatMap(({ notes }) => notes),
      kept: all.flatMap(({ kept }) => kept),
    };
  } finally {
    closeSync(root);
  }
};
