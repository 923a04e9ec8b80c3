/**
 * The rows of a CSV text (RFC 4180), each an array of fields.
 * @throws when a quote is not closed, with the line where its field began
 */
export const parseCsv = (text) => {
  const rows = [];
  let row = [];
  let field = '';
  let line = 1;
  let openedAt = 0;
  let begun = false;
  const endField = () => {
    row.push(field);
    field = '';
  };
  const endRow = () => {
    endField();
    rows.push(row);
    row = [];
    begun = false;
  };
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at];
    if (char === '\n') line += 1;
    if (openedAt > 0) {
      if (char !== '"') field += char;
      else if (text[at + 1] === '"') {
        field += '"';
        at += 1;
      } else openedAt = 0;
      continue;
    }
    if (char === '\n' || (char === '\r' && text[at + 1] === '\n')) {
      if (char === '\r') {
        at += 1;
        line += 1;
      }
      endRow();
      continue;
    }
    begun = true;
    if (char === '"' && field === '') openedAt = line;
    else if (char === ',') endField();
    else field += char;
  }
  if (openedAt > 0) throw new Error(`the quote that opens in line ${openedAt} is not closed`);
  if (begun) endRow();
  return rows;
};
