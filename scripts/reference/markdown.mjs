/** Makes a text safe for a table cell. */
export const cell = (text) => String(text).replaceAll('|', '\\|').replaceAll('\n', ' ');

export const code = (text) => `\`${text}\``;

/** A table; rows are lists of cells. */
export const table = (head, rows) =>
  [head, head.map(() => '---'), ...rows]
    .map((row) => `| ${row.map(cell).join(' | ')} |`)
    .join('\n');

/** A page that names its source; parts are paragraphs. */
export const page = (title, source, parts) =>
  `${[`# ${title}`, `Generated from ${source} by \`npm run docs\`. Change the source, not this page.`, ...parts].join('\n\n')}\n`;

/** Takes the text for each name; fails when a name has no text or a text no name. */
export const described = (what, names, texts) => {
  const missing = names.filter((name) => texts[name] === undefined);
  const strange = Object.keys(texts).filter((name) => !names.includes(name));
  if (missing.length + strange.length > 0)
    throw new Error(
      `${what}: no text for [${missing.join(', ')}], a text for the unknown [${strange.join(', ')}]`,
    );
  return names.map((name) => [name, texts[name]]);
};
