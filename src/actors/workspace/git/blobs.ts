import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, readSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { deflateSync } from 'node:zlib';

export type ObjectFormat = 'sha1' | 'sha256';

/** A file as git hashes and stores it: a header, then the bytes. */
export type Blob = Buffer;

export const readBlob = (file: number, size: number): Blob => {
  const header = `blob ${size}\0`;
  const blob = Buffer.allocUnsafe(header.length + size);
  blob.write(header, 'latin1');
  let at = header.length;
  while (at < blob.length) {
    const got = readSync(file, blob, at, blob.length - at, null);
    if (got === 0) return blobOf(blob.subarray(header.length, at));
    at += got;
  }
  return blob;
};

export const blobOf = (bytes: Uint8Array): Blob =>
  Buffer.concat([Buffer.from(`blob ${bytes.length}\0`), bytes]);

export const blobContent = (blob: Blob): Buffer => blob.subarray(blob.indexOf(0) + 1);

export const blobName = (blob: Blob, format: ObjectFormat): string =>
  createHash(format).update(blob).digest('hex');

/** Writes a blob as a loose object, atomically. */
export const keepBlob = (objects: string, oid: string, blob: Blob): void => {
  const folder = join(objects, oid.slice(0, 2));
  const file = join(folder, oid.slice(2));
  if (statSync(file, { throwIfNoEntry: false }) !== undefined) return;
  mkdirSync(folder, { recursive: true });
  const temporary = join(folder, `tmp_obj_${randomBytes(8).toString('hex')}`);
  writeFileSync(temporary, deflateSync(blob, { level: 1 }), { flag: 'wx', mode: 0o444 });
  renameSync(temporary, file);
};
