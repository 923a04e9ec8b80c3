import { mkdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { DiskEvent } from './recording.ts';

type Change =
  | { readonly kind: 'write'; readonly offset: number; readonly data: Buffer }
  | { readonly kind: 'truncate'; readonly size: number };

interface File {
  /** What is certainly on disk. */
  durable: Buffer;
  /** What may be, since the file was synced last. */
  pending: Change[];
  /** As the program sees it. */
  size: number;
  /** How much of `pending` the sync that is under way covers. */
  syncing: number;
}

/** Names of a folder that are given to a file or folder, or taken away (null), in one step. */
type Naming = Readonly<Record<string, Node | null>>;
interface Folder {
  readonly durable: Map<string, Node>;
  readonly names: Map<string, Node>;
  pending: Naming[];
  syncing: number;
}
type Node = { readonly file: File } | { readonly folder: Folder };

const newFile = (): File => ({ durable: Buffer.alloc(0), pending: [], size: 0, syncing: 0 });
const newFolder = (): Folder => ({ durable: new Map(), names: new Map(), pending: [], syncing: 0 });

const resized = (content: Buffer, size: number): Buffer =>
  size <= content.length
    ? content.subarray(0, size)
    : Buffer.concat([content, Buffer.alloc(size - content.length)]);

const changed = (content: Buffer, changes: readonly Change[]): Buffer => {
  if (changes.length === 0) return content;
  const ends = changes.map((change) =>
    change.kind === 'write' ? change.offset + change.data.length : change.size,
  );
  const room = Buffer.alloc(Math.max(content.length, ...ends));
  content.copy(room);
  let size = content.length;
  for (const change of changes)
    if (change.kind === 'truncate') {
      if (change.size < size) room.fill(0, change.size, size);
      size = change.size;
    } else {
      change.data.copy(room, change.offset);
      size = Math.max(size, change.offset + change.data.length);
    }
  return room.subarray(0, size);
};

/** What became of the writes after the last sync. */
export const fates = ['all', 'none', 'torn', 'some', 'holes'] as const;
export type Fate = (typeof fates)[number];

const sectorBytes = 512;

/** The parts of a write that a disk takes whole or not at all. */
const sectorsOf = ({ offset, data }: Extract<Change, { kind: 'write' }>): readonly Change[] => {
  const parts: Change[] = [];
  for (let at = 0; at < data.length; ) {
    const end = Math.min(data.length, at + sectorBytes - ((offset + at) % sectorBytes));
    parts.push({ kind: 'write', offset: offset + at, data: data.subarray(at, end) });
    at = end;
  }
  return parts;
};

const torn = (changes: readonly Change[], random: () => number): readonly Change[] => {
  const kept = Math.floor(random() * changes.length);
  const last = changes[kept];
  if (last?.kind !== 'write') return changes.slice(0, kept);
  const cut = Math.floor(random() * last.data.length);
  return [...changes.slice(0, kept), { ...last, data: last.data.subarray(0, cut) }];
};

const survivorsOf = (
  changes: readonly Change[],
  fate: Fate,
  random: () => number,
): readonly Change[] => {
  if (fate === 'all') return changes;
  if (fate === 'none') return [];
  if (fate === 'torn') return torn(changes, random);
  const share = [0.1, 0.5, 0.9][Math.floor(random() * 3)] ?? 0.5;
  return changes
    .flatMap((change) => (change.kind === 'write' ? sectorsOf(change) : [change]))
    .filter(() => random() < share);
};

/** With holes the file has its new size, and zeros where its data did not come through. */
const contentAfter = (file: File, fate: Fate, random: () => number): Buffer => {
  const content = changed(file.durable, survivorsOf(file.pending, fate, random));
  return fate === 'holes' && content.length < file.size ? resized(content, file.size) : content;
};

const rename = (names: Map<string, Node>, naming: Naming): void => {
  for (const [name, node] of Object.entries(naming))
    if (node === null) names.delete(name);
    else names.set(name, node);
};

const namesAfter = (
  { durable, pending }: Folder,
  fate: Fate,
  random: () => number,
): ReadonlyMap<string, Node> => {
  const share = fate === 'all' ? 1 : fate === 'none' ? 0 : random();
  const names = new Map(durable);
  // File systems keep the order in which names changed.
  for (const naming of pending.slice(0, Math.round(share * pending.length))) rename(names, naming);
  return names;
};

/**
 * What a disk holds of some folders while a program works on them, by the letter of what `fsync`
 * promises: a file's content when the file was synced, a file's name when its folder was.
 */
export const createDisk = (roots: readonly string[]) => {
  const tops = new Map(roots.map((root) => [root, newFolder()]));
  const open = new Map<
    number,
    { readonly node: Node; readonly append: boolean; position: number }
  >();

  const partsOf = (path: string): readonly [Folder, readonly string[]] | null => {
    for (const [root, folder] of tops)
      if (path === root || path.startsWith(`${root}/`))
        return [
          folder,
          path
            .slice(root.length + 1)
            .split('/')
            .filter((part) => part !== ''),
        ];
    return null;
  };
  const find = (path: string): Node | null => {
    const parts = partsOf(path);
    if (parts === null) return null;
    let node: Node | undefined = { folder: parts[0] };
    for (const part of parts[1])
      node = node !== undefined && 'folder' in node ? node.folder.names.get(part) : undefined;
    return node ?? null;
  };
  const name = (path: string, node: Node | null, gone?: string): void => {
    const parent = find(dirname(path));
    if (parent === null || !('folder' in parent)) return;
    if (gone !== undefined && dirname(gone) !== dirname(path)) name(gone, null);
    const naming = {
      [basename(path)]: node,
      ...(gone !== undefined && dirname(gone) === dirname(path) ? { [basename(gone)]: null } : {}),
    };
    rename(parent.folder.names, naming);
    parent.folder.pending.push(naming);
  };

  const openAt = (fd: number, path: string, flags: string): void => {
    if (partsOf(path) === null) return void open.delete(fd);
    let node = find(path);
    if (node === null) {
      node = { file: newFile() };
      name(path, node);
    } else if (flags.includes('O_TRUNC') && 'file' in node)
      change(node.file, { kind: 'truncate', size: 0 });
    open.set(fd, { node, append: flags.includes('O_APPEND'), position: 0 });
  };
  const change = (file: File, made: Change): void => {
    file.pending.push(made);
    file.size =
      made.kind === 'truncate' ? made.size : Math.max(file.size, made.offset + made.data.length);
  };
  const write = (fd: number, data: Buffer, given: number | null): void => {
    const found = open.get(fd);
    if (found === undefined || !('file' in found.node)) return;
    const { file } = found.node;
    const offset = given ?? (found.append ? file.size : found.position);
    if (given === null) found.position = offset + data.length;
    change(file, { kind: 'write', offset, data });
  };
  const sync = (fd: number, step: 'sync.began' | 'sync.ended'): void => {
    const node = open.get(fd)?.node;
    if (node === undefined) return;
    const synced = 'file' in node ? node.file : node.folder;
    if (step === 'sync.began') {
      synced.syncing = synced.pending.length;
      return;
    }
    if ('file' in node)
      node.file.durable = changed(node.file.durable, node.file.pending.slice(0, synced.syncing));
    else
      for (const naming of node.folder.pending.slice(0, synced.syncing))
        rename(node.folder.durable, naming);
    synced.pending = synced.pending.slice(synced.syncing) as never;
  };

  const take = (event: DiskEvent): void => {
    if (event.type === 'open') openAt(event.fd, event.path, event.flags);
    else if (event.type === 'close') open.delete(event.fd);
    else if (event.type === 'write') write(event.fd, event.data, event.offset);
    else if (event.type === 'truncate') {
      const node = open.get(event.fd)?.node;
      if (node !== undefined && 'file' in node)
        change(node.file, { kind: 'truncate', size: event.size });
    } else if (event.type === 'sync.began' || event.type === 'sync.ended')
      sync(event.fd, event.type);
    else if (event.type === 'mkdir') {
      if (partsOf(event.path) !== null) name(event.path, { folder: newFolder() });
    } else if (event.type === 'unlink') {
      if (find(event.path) !== null) name(event.path, null);
    } else if (event.type === 'link' || event.type === 'rename') {
      const node = find(event.from);
      if (node === null) return;
      name(event.to, node, event.type === 'rename' ? event.from : undefined);
    } else if (event.type === 'unknown' && open.has(event.fd))
      throw new Error(`${event.call} on a file of ours is not known to this model`);
  };

  const put = (
    folder: Folder,
    path: string,
    pick: (node: Node) => Fate,
    random: () => number,
  ): void => {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    for (const [last, node] of namesAfter(folder, pick({ folder }), random))
      if ('folder' in node) put(node.folder, join(path, last), pick, random);
      else writeFileSync(join(path, last), contentAfter(node.file, pick(node), random));
  };

  return {
    take,
    /** Whether a descriptor leads to one of the folders. */
    holds: (fd: number): boolean => open.has(fd),
    /** Puts down what the disk may hold of a root if the power fails now. */
    image: (root: string, path: string, pick: () => Fate, random: () => number): void => {
      const top = tops.get(root);
      if (top !== undefined) put(top, path, pick, random);
    },
  };
};
