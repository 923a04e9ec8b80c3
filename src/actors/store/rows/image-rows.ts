import { hourMs } from '../../../machines/milliseconds.ts';
import {
  allImageBytesAtMost,
  type ImageData,
  type ImageFacts,
  type ImageRef,
  type ImageType,
  imagesAtMost,
} from '../../files/image.ts';
import type { Images } from '../port.ts';
import { afterAnswer, type Database, type Row, type Work } from './rows.ts';
import { lazy } from './store-statements.ts';

/** Uploads have no task yet. */
const noTask = '';
const keptMs = hourMs;
const uploadsAtMost = 32;

const refOf = (row: Row): ImageRef => ({
  digest: String(row['digest']),
  mediaType: String(row['media_type']) as ImageType,
});

const factsOf = (row: Row): ImageFacts => ({
  ...refOf(row),
  name: String(row['name']),
  bytes: Number(row['bytes']),
});

const prepareImages = (db: Database) => ({
  facts: db.prepare(
    `select digest, media_type, name, bytes from images where task_id = ? and attempt = ?
     order by place, digest`,
  ),
  put: db.prepare(
    `insert into images (task_id, attempt, digest, place, name, media_type, bytes, at, data)
     values (?, ?, ?, ?, '', ?, ?, ?, ?)
     on conflict (task_id, attempt, digest) do update set at = excluded.at`,
  ),
  dropOld: db.prepare(`delete from images where task_id = '' and digest <> ?3 and (at < ?1 or digest
    in (select digest from images where task_id = '' order by at desc limit 1000 offset ?2))`),
  attach: db.prepare(
    `insert into images (task_id, attempt, digest, place, name, media_type, bytes, at, data)
     select ?1, 0, digest, ?3, ?4, media_type, bytes, at, data from images
     where task_id = '' and attempt = 0 and digest = ?2
     on conflict (task_id, attempt, digest) do nothing`,
  ),
  find: db.prepare(
    'select digest, media_type, data from images where task_id = ? and digest = ? limit 1',
  ),
  forget: db.prepare('delete from images where task_id = ?'),
});

export const createImages = (db: Database): Images => {
  const sql = lazy(() => prepareImages(db));
  /** A database of an earlier version that is only read has none. */
  const facts = function* (taskId: string, attempt: number): Work<readonly ImageFacts[]> {
    if (!(yield* db.has('images', 'digest'))) return [];
    return (yield* sql().facts.all(taskId, attempt)).map(factsOf);
  };
  return {
    upload: ({ digest, mediaType, data }, bytes) =>
      db.write(function* () {
        const at = yield* db.now();
        yield* sql().put.run(noTask, 0, digest, 0, mediaType, bytes, at, data);
        yield* sql().dropOld.run(at - keptMs, uploadsAtMost, digest);
      }),
    uploaded: (digests) =>
      afterAnswer(db.ask(facts(noTask, 0)), (found) =>
        found.filter(({ digest }) => digests.includes(digest)),
      ),
    attach: (taskId, images) =>
      db.write(function* () {
        for (const [place, { digest, name }] of images.entries())
          yield* sql().attach.run(taskId, digest, place, name);
      }),
    attached: (taskId) => db.ask(facts(taskId, 0)),
    keepRead: (taskId, attempt, { digest, mediaType, data }, bytes) =>
      db.write(function* () {
        const read = yield* facts(taskId, attempt);
        if (read.some((image) => image.digest === digest)) return true;
        const sum = read.reduce((all, image) => all + image.bytes, bytes);
        if (read.length >= imagesAtMost || sum > allImageBytesAtMost) return false;
        const at = yield* db.now();
        yield* sql().put.run(taskId, attempt, digest, read.length, mediaType, bytes, at, data);
        return true;
      }),
    find: (taskId, digest) =>
      db.ask(
        (function* (): Work<ImageData | null> {
          const row = yield* sql().find.first(taskId, digest);
          return row === null ? null : { ...refOf(row), data: String(row['data']) };
        })(),
      ),
    forget: (taskId) =>
      db.write(function* () {
        yield* sql().forget.run(taskId);
      }),
  };
};
