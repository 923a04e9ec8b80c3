import { lstatSync } from 'node:fs';
import type { CommandRecord } from './command-records.ts';
import { type ProtectedEntry, pathText, protectedEntryAt } from './protected-scan.ts';

const deviceOf = (id: string): string => id.slice(0, id.indexOf(':'));
const withoutDevice = (id: string): string => id.slice(id.indexOf(':'));

const hasNumber = ({ kind }: ProtectedEntry): boolean => kind === 'file' || kind === 'folder';

export const rootIdOf = (root: string): string | null => {
  const stat = lstatSync(root, { throwIfNoEntry: false });
  return stat?.isDirectory() ? `${stat.dev}:${stat.ino}` : null;
};

/**
 * The record with the device numbers of today, which may differ after a restart of the machine.
 * `gone`: another folder is there now.
 */
export const recordToday = (
  record: CommandRecord,
): CommandRecord | 'gone' | { readonly fault: string } => {
  const { root, rootId, before, made } = record;
  const now = rootIdOf(root);
  if (now === null || withoutDevice(now) !== withoutDevice(rootId)) return 'gone';
  if (now === rootId) return record;
  const devices = new Map([[deviceOf(rootId), deviceOf(now)]]);
  let [found, same] = [0, 0];
  for (const entry of before.entries.filter(hasNumber)) {
    const today = protectedEntryAt(root, pathText(entry.path));
    if (today?.kind !== entry.kind) continue;
    found += 1;
    if (withoutDevice(today.id) !== withoutDevice(entry.id)) continue;
    same += 1;
    devices.set(deviceOf(entry.id), deviceOf(today.id));
  }
  if (found > 0 && same === 0) return { fault: 'its files have other inode numbers now' };
  const renamed = (id: string): string =>
    `${devices.get(deviceOf(id)) ?? deviceOf(id)}${withoutDevice(id)}`;
  const all = (ids: ReadonlySet<string>): ReadonlySet<string> => new Set([...ids].map(renamed));
  return {
    root,
    rootId: now,
    before: {
      ...before,
      entries: before.entries.map((entry) => ({ ...entry, id: renamed(entry.id) })),
      folders: all(before.folders),
      closed: all(before.closed),
    },
    made: made === null ? null : all(made),
  };
};
