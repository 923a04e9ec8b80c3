export type KeyPress =
  | 'up'
  | 'down'
  | 'first'
  | 'last'
  | 'show'
  | 'back'
  | 'help'
  | 'quit'
  | 'interrupt';

const keyNames: Readonly<Record<string, KeyPress>> = {
  j: 'down',
  k: 'up',
  g: 'first',
  G: 'last',
  q: 'quit',
  '?': 'help',
  '\r': 'show',
  '\n': 'show',
  '\u0003': 'interrupt',
  '\u001b': 'back',
  '\u001b[A': 'up',
  '\u001b[B': 'down',
  '\u001bOA': 'up',
  '\u001bOB': 'down',
  '\u001b[H': 'first',
  '\u001b[F': 'last',
};

const escapeCharacter = '\u001b';
/** One key, or an escape sequence as a whole. */
const oneKey = new RegExp(`${escapeCharacter}(?:\\[[0-9;]*[A-Za-z~]|O[A-Za-z])?|.`, 'gsu');

/** The keys in what a terminal sent; others are left out. */
export const keyPressesIn = (sent: string): readonly KeyPress[] =>
  (sent.match(oneKey) ?? []).flatMap((text) => keyNames[text] ?? []);

export const keyHelp: readonly string[] = [
  'j, Down    next task',
  'k, Up      task before',
  'g, G       first task, last task',
  'Enter      show the task; again, or Esc, goes back',
  '?          this help',
  'q, Ctrl-C  quit; agents go on',
];
