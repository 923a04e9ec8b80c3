/** After a backslash; what is missing stands for itself. */
const escapes: Readonly<Record<string, string>> = {
  a: '\u0007',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
};

/** A name as git writes it in a patch: in quotes when it has a quote, a backslash or a control. */
export const unquoted = (name: string): string => {
  if (!name.startsWith('"')) return name;
  const bytes: number[] = [];
  for (const [part, octal, escaped] of name.slice(1, -1).matchAll(/\\([0-7]{3})|\\(.)|[^\\]+/g)) {
    const text = escaped === undefined ? part : (escapes[escaped] ?? escaped);
    if (octal !== undefined) bytes.push(Number.parseInt(octal, 8));
    else bytes.push(...new TextEncoder().encode(text));
  }
  return new TextDecoder().decode(new Uint8Array(bytes));
};

/** The path after `--- ` or `+++ `; null: the file is not on that side. */
export const pathOnLine = (line: string): string | null => {
  const name = unquoted(line.slice(4).replace(/\t$/, ''));
  return name === '/dev/null' ? null : name.replace(/^[ab]\//, '');
};
