import { mkdir, readdir, readFile, writeFile } from 'node:fs';
import { join } from 'node:path';

const pathOf = (folder, name) => join(folder, `${name}.txt`);

export const readNote = (folder, name, done) => {
  readFile(pathOf(folder, name), 'utf8', (error, text) => {
    if (error?.code === 'ENOENT') return done(null, null);
    if (error) return done(error);
    done(null, text);
  });
};

export const writeNote = (folder, name, text, done) => {
  readNote(folder, name, (error, before) => {
    if (error) return done(error);
    if (before === text) return done(null, false);
    mkdir(folder, { recursive: true }, (failed) => {
      if (failed) return done(failed);
      writeFile(pathOf(folder, name), text, (problem) => (problem ? done(problem) : done(null, true)));
    });
  });
};

export const allNotes = (folder, done) => {
  readdir(folder, (error, names) => {
    if (error) return done(error);
    const wanted = names.filter((name) => name.endsWith('.txt')).map((name) => name.slice(0, -4)).sort();
    const notes = [];
    let left = wanted.length;
    if (left === 0) return done(null, notes);
    wanted.forEach((name, index) => {
      readNote(folder, name, (failed, text) => {
        if (left < 0) return;
        if (failed) {
          left = -1;
          return done(failed);
        }
        notes[index] = { name, text };
        left -= 1;
        if (left === 0) done(null, notes);
      });
    });
  });
};
