import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Git stores a pointer instead of a file of git-lfs:
 * https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md
 */
const pointerVersion = 'version https://git-lfs.github.com/spec/v1';
/** A pointer is shorter than this. */
export const pointerBytes = 1_024;

export const isPointer = (content: Uint8Array): boolean =>
  content.length === 0 ||
  (content.length < pointerBytes &&
    Buffer.from(content).toString('latin1').startsWith(`${pointerVersion}\n`));

export const asPointer = (store: string, content: Buffer): Buffer => {
  if (isPointer(content)) return content;
  const oid = createHash('sha256').update(content).digest('hex');
  const folder = join(store, 'objects', oid.slice(0, 2), oid.slice(2, 4));
  const file = join(folder, oid);
  if (statSync(file, { throwIfNoEntry: false })?.size !== content.length) {
    mkdirSync(folder, { recursive: true });
    const temporary = join(folder, `tmp-${randomBytes(8).toString('hex')}`);
    writeFileSync(temporary, content, { flag: 'wx', mode: 0o644 });
    renameSync(temporary, file);
  }
  return Buffer.from(`${pointerVersion}\noid sha256:${oid}\nsize ${content.length}\n`);
};
