import { allNotes } from './notes.js';

/** One line for each note: its name and how many words it has. */
export const report = (folder, done) => {
  allNotes(folder, (error, notes) => {
    if (error) return done(error);
    const lines = notes.map(({ name, text }) => `${name}: ${text.split(/\s+/).filter(Boolean).length}`);
    done(null, lines.join('\n'));
  });
};
