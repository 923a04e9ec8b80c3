import { type RequestId, requestIdSchema } from './request-id.ts';

/** In UTF-16 units, of a name or a value of the outermost object that is looked at. */
const longestToken = 6_100;

export interface IdScan {
  /** Takes the next piece of the message. @returns the id once it was read, else null */
  read(piece: string): RequestId | null;
}

const idIn = (token: string): RequestId | null => {
  try {
    return requestIdSchema.safeParse(JSON.parse(token)).data ?? null;
  } catch {
    return null;
  }
};

const [quote, backslash, colon, comma] = [34, 92, 58, 44];
const isOpening = (code: number): boolean => code === 123 || code === 91;
const isClosing = (code: number): boolean => code === 125 || code === 93;

/**
 * Finds the id of a request that is too long to be kept and parsed. The official client writes it
 * behind the params.
 */
export const createIdScan = (): IdScan => {
  let depth = 0;
  let isQuoted = false;
  let isEscaped = false;
  let name = '';
  let token = '';
  let found: RequestId | null = null;

  const endToken = (): void => {
    if (name === '"id"') found ??= idIn(token);
    name = '';
    token = '';
  };
  /** @returns whether the sign stands between the names and values of the outermost object */
  const takeSign = (code: number): boolean => {
    if (isEscaped) isEscaped = false;
    else if (isQuoted && code === backslash) isEscaped = true;
    else if (code === quote) isQuoted = !isQuoted;
    else if (isQuoted) return false;
    else if (isOpening(code)) {
      depth += 1;
      return depth === 1;
    } else if (isClosing(code)) {
      if (depth === 1) endToken();
      depth -= 1;
    } else if (depth === 1 && code === comma) {
      endToken();
      return true;
    } else if (depth === 1 && code === colon) {
      name = token.trim();
      token = '';
      return true;
    }
    return false;
  };

  return {
    read: (piece) => {
      for (let at = 0; at < piece.length && found === null; at += 1) {
        const isBetween = takeSign(piece.charCodeAt(at));
        if (depth === 1 && !isBetween && token.length < longestToken) token += piece[at];
      }
      return found;
    },
  };
};
