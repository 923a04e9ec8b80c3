import { createHash } from 'node:crypto';
import { closeSync, readSync } from 'node:fs';
import { inflateSync } from 'node:zlib';
import { entriesIn, openBelow, withFile } from '../folders/handles.ts';
import { isGone, isShut } from '../folders/walk.ts';
import type { ObjectFormat } from '../git/blobs.ts';

/** A name that the agent's own git has for a commit: `fix/x`, `v1`, `stash@{0}`, `refs/foo/x`. */
export interface AgentRef {
  readonly name: string;
  readonly oid: string;
}

export interface AgentObject {
  readonly type: string;
  readonly content: Buffer;
  /** As git hashes it: with its header. */
  readonly whole: Buffer;
}

const mostRefs = 200;
const textBytesAtMost = 1024 * 1024;
const objectBytesAtMost = 100 * 1024 * 1024;
/** Trees that hold one another many times would take for ever. */
const readBytesAtMost = 1024 * 1024 * 1024;
const mostObjects = 50_000;
const oidPattern = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/;
const packedLine = /^([0-9a-f]{40,64}) (refs\/\S+)$/gm;
const leftDetached = /^\S+ \S+ [^\t]*\tcheckout: moving from ([0-9a-f]{40,64}) to /gm;

/** The first bytes of a file below an open folder; null when it is none, or too large. */
const bytesAt = (root: number, path: string, atMost: number): Buffer | null => {
  const cut = path.lastIndexOf('/') + 1;
  let folder: number | null = null;
  try {
    folder = openBelow(root, path.slice(0, cut));
    return withFile(folder, path.slice(cut), (file, size) => {
      if (size > atMost) return null;
      const bytes = Buffer.alloc(size);
      return bytes.subarray(0, readSync(file, bytes, 0, size, 0));
    });
  } catch (error) {
    if (!isGone(error) && !isShut(error)) throw error;
    return null;
  } finally {
    if (folder !== null) closeSync(folder);
  }
};

const textAt = (root: number, path: string): string =>
  bytesAt(root, path, textBytesAtMost)?.toString('latin1') ?? '';

const looseRefs = (root: number, top: string): AgentRef[] => {
  const found: AgentRef[] = [];
  const folders = [top];
  for (let at = folders.pop(); at !== undefined && found.length < mostRefs; at = folders.pop()) {
    let folder: number | null = null;
    try {
      folder = openBelow(root, at);
      for (const entry of entriesIn(folder)) {
        const name = `${at}/${entry.name}`;
        if (entry.isDirectory()) folders.push(name);
        const oid = entry.isFile() ? textAt(root, name).trim() : '';
        if (oidPattern.test(oid)) found.push({ name, oid });
      }
    } catch (error) {
      if (!isGone(error) && !isShut(error)) throw error;
    } finally {
      if (folder !== null) closeSync(folder);
    }
  }
  return found;
};

/** The commits of other worktrees that are on no branch. */
const worktreeHeads = (root: number): readonly AgentRef[] => {
  let folder: number | null = null;
  try {
    folder = openBelow(root, 'worktrees');
    return [...entriesIn(folder)]
      .filter((entry) => entry.isDirectory())
      .slice(0, mostRefs)
      .map(({ name }) => ({ name, oid: textAt(root, `worktrees/${name}/HEAD`).trim() }));
  } catch (error) {
    if (!isGone(error) && !isShut(error)) throw error;
    return [];
  } finally {
    if (folder !== null) closeSync(folder);
  }
};

const readRefs = (root: number) => {
  const packed = [...textAt(root, 'packed-refs').matchAll(packedLine)].map(
    ([, oid = '', name = '']) => ({ name, oid }),
  );
  const loose = looseRefs(root, 'refs');
  const byName = new Map([...packed, ...loose].map(({ name, oid }) => [name, oid]));
  const stashes = textAt(root, 'logs/refs/stash').split('\n').filter(Boolean).reverse();
  const stash = byName.get('refs/stash') ?? '';
  byName.delete('refs/stash');
  const head = textAt(root, 'HEAD').trim();
  const headOid = head.startsWith('ref: ') ? byName.get(head.slice('ref: '.length)) : head;
  const named = [...byName].map(([name, oid]) => ({
    name: name.replace(/^refs\/(?:heads|tags)\//, ''),
    oid,
  }));
  const stashOids =
    stashes.length === 0 ? [stash] : stashes.map((line) => line.split(' ')[1] ?? '');
  const detached = [...textAt(root, 'logs/HEAD').matchAll(leftDetached)].map(([, oid = '']) => oid);
  const refs = [
    ...named,
    ...stashOids.map((oid, at) => ({ name: `stash@{${at}}`, oid })),
    ...detached.map((oid) => ({ name: oid.slice(0, 12), oid })),
    ...worktreeHeads(root),
  ];
  const byOid = new Map(refs.toReversed().map(({ name, oid }) => [oid, name]));
  return {
    head: headOid !== undefined && oidPattern.test(headOid) ? headOid : null,
    refs: [...byOid]
      .map(([oid, name]) => ({ name, oid }))
      .filter(({ oid }) => oidPattern.test(oid))
      .toReversed(),
  };
};

/**
 * Reads the git directory of an agent as data: by open handles, following no link. Only loose
 * objects are read, as git makes them there, and each is checked against its name.
 */
export const readAgentGit = (root: number, format: ObjectFormat) => {
  let bytesLeft = readBytesAtMost;
  let objectsLeft = mostObjects;
  const object = (oid: string): AgentObject | null => {
    objectsLeft -= 1;
    if (bytesLeft < 0 || objectsLeft < 0) return null;
    const packed = bytesAt(root, `objects/${oid.slice(0, 2)}/${oid.slice(2)}`, objectBytesAtMost);
    if (packed === null) return null;
    try {
      const whole = inflateSync(packed, { maxOutputLength: objectBytesAtMost });
      bytesLeft -= whole.length;
      if (createHash(format).update(whole).digest('hex') !== oid) return null;
      const end = whole.indexOf(0);
      const [type = ''] = whole.toString('latin1', 0, end).split(' ');
      return { type, content: whole.subarray(end + 1), whole };
    } catch {
      return null;
    }
  };
  return { ...readRefs(root), object };
};

export type AgentGitReading = ReturnType<typeof readAgentGit>;

/** The tree and parents of a commit, and its message. */
export const partsOfCommit = ({ content }: AgentObject) => {
  const text = content.toString('latin1');
  const cut = text.indexOf('\n\n');
  const head = text.slice(0, cut);
  return {
    tree: /^tree ([0-9a-f]+)$/m.exec(head)?.[1] ?? '',
    parents: [...head.matchAll(/^parent ([0-9a-f]+)$/gm)].map(([, oid = '']) => oid),
    message: content.subarray(cut + 2).toString(),
  };
};

export const entriesOfTree = ({ content }: AgentObject, format: ObjectFormat) => {
  const entries: { readonly mode: string; readonly name: string; readonly oid: string }[] = [];
  const oidBytes = format === 'sha256' ? 32 : 20;
  for (let at = 0; at < content.length; ) {
    const end = content.indexOf(0, at);
    if (end < 0) break;
    const [mode = '', ...name] = content.toString('latin1', at, end).split(' ');
    const oid = content.toString('hex', end + 1, end + 1 + oidBytes);
    entries.push({ mode, name: name.join(' '), oid });
    at = end + 1 + oidBytes;
  }
  return entries;
};
