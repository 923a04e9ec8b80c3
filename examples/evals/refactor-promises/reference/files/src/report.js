import { allNotes } from './notes.js';

/** One line for each note: its name and how many words it has. */
export const report = async (folder) => {
  const notes = await allNotes(folder);
  return notes.map(({ name, text }) => `${name}: ${text.split(/\s+/).filter(Boolean).length}`).join('\n');
};
