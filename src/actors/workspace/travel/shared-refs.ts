import { join } from 'node:path';
import { GitError } from '../git.ts';
import { plainEntries, plainText, requirePlainWay } from '../plain.ts';

const looseAtMost = 200;
const packedAtMost = 16 * 1024 * 1024;
const mostBranches = 10_000;
const objectName = /^([0-9a-f]{40}|[0-9a-f]{64})\n?$/;

const looseTip = async (top: string, ref: string): Promise<string | null> => {
  const text = await plainText(join(top, ref), looseAtMost);
  if (text === null) return null;
  const [, tip] = objectName.exec(text) ?? [];
  if (tip !== undefined) return tip;
  throw new GitError(`${join(top, ref)} names no commit; nothing was read or written there`);
};

const packedTips = async (top: string): Promise<ReadonlyMap<string, string>> => {
  const text = (await plainText(join(top, 'packed-refs'), packedAtMost)) ?? '';
  return new Map(
    text.split('\n').flatMap((line): readonly [string, string][] => {
      const [, tip, ref] = /^([0-9a-f]+) (refs\/\S+)$/.exec(line) ?? [];
      return tip === undefined || ref === undefined ? [] : [[ref, tip]];
    }),
  );
};

/**
 * The commit of a branch in a repository that others write to. Git would wait for a pipe there, and
 * follow a link. @throws GitError when it is no plain file, or large, or names no commit
 */
export const sharedTip = async (top: string, name: string): Promise<string | null> => {
  const ref = `refs/heads/${name}`;
  await requirePlainWay(top, ref);
  // Both are read, since git reads both.
  const packed = await packedTips(top);
  return (await looseTip(top, ref)) ?? packed.get(ref) ?? null;
};

async function* looseBranches(top: string, folder: string): AsyncGenerator<string> {
  for await (const entry of plainEntries(join(top, folder))) {
    const ref = `${folder}/${entry.name}`;
    if (ref === 'refs/heads/agent' || ref.endsWith('.lock')) continue;
    if (entry.isDirectory()) yield* looseBranches(top, ref);
    else yield ref;
  }
}

/** The commits of people's branches there. Those of agents are thousands. */
export const sharedTipsOfPeople = async (top: string): Promise<readonly string[]> => {
  const tips = new Map(await packedTips(top));
  let count = 0;
  for await (const ref of looseBranches(top, 'refs/heads')) {
    count += 1;
    if (count > mostBranches)
      throw new GitError(`${join(top, 'refs/heads')} has more than ${mostBranches} branches`);
    const tip = await looseTip(top, ref);
    if (tip !== null) tips.set(ref, tip);
  }
  return [...tips].flatMap(([ref, tip]) =>
    ref.startsWith('refs/heads/') && !ref.startsWith('refs/heads/agent/') ? [tip] : [],
  );
};
