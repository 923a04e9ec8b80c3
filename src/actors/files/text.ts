/** Null for bytes that are not UTF-8. A byte order mark stays. */
export const decodeUtf8 = (bytes: Uint8Array): string | null => {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
};

/** The lines of a text, or of a part of it, without making them. */
export const countLines = (text: string, from = 0, to = text.length): number => {
  let count = 1;
  for (let at = text.indexOf('\n', from); at >= 0 && at < to; at = text.indexOf('\n', at + 1))
    count += 1;
  return count;
};
