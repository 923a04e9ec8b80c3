export interface CodePart {
  readonly text: string;
  /** The class of its colour; empty: as other text. */
  readonly tone: string;
}

/** Of the usual languages together; a word more is coloured in a wrong place seldom. */
const words =
  'abstract|as|async|await|break|case|catch|class|const|continue|def|default|defer|delete|do|done|elif|else|elsif|end|enum|except|export|extends|false|fi|final|finally|fn|for|from|func|function|if|impl|implements|import|in|instanceof|interface|lambda|let|match|mod|module|mut|namespace|new|nil|not|null|package|pass|private|protected|pub|public|raise|readonly|require|return|self|static|struct|super|switch|then|this|throw|throws|trait|true|try|type|typeof|undefined|unless|until|use|using|var|void|when|where|while|with|yield';
const strings = ['"', "'", '`'].map((end) => `${end}(?:\\\\.|[^${end}\\\\])*${end}`).join('|');
/** Groups: comment, string, word. A line that begins with `*` goes on with a comment. */
const patternWith = (comment: string): RegExp =>
  new RegExp(`(${comment})|(${strings})|\\b(${words})\\b`, 'g');

const slashes = patternWith('//.*|/\\*.*?(?:\\*/|$)|^\\s*\\*(?:[ /].*)?$');
const hash = patternWith('(?<!\\S)#.*');
const patterns: readonly (readonly [RegExp, RegExp])[] = [
  [
    /\.([cm]?[jt]sx?|c|h|cc|cpp|hpp|cs|css|go|java|jsonc?|kts?|php|proto|rs|scala|scss|swift)$/,
    slashes,
  ],
  [/\.(bash|ex|exs|py|rb|sh|toml|ya?ml|zsh)$|file$/i, hash],
];
const tones = ['quiet', 'tone-done', 'tone-rev'];
const charactersAtMost = 400;

/** A line of code in pieces, by the language that the name of the file says. */
export const codeParts = (path: string, line: string): readonly CodePart[] => {
  const pattern = patterns.find(([names]) => names.test(path))?.[1];
  if (pattern === undefined || line.length > charactersAtMost) return [{ text: line, tone: '' }];
  const parts: CodePart[] = [];
  let end = 0;
  const add = (text: string, tone: string): void => {
    if (text !== '') parts.push({ text, tone });
  };
  for (const found of line.matchAll(pattern)) {
    add(line.slice(end, found.index), '');
    add(found[0], tones[found.slice(1).findIndex((group) => group !== undefined)] ?? '');
    end = found.index + found[0].length;
  }
  add(line.slice(end), '');
  return parts;
};
