const depthAtMost = 64;

/** Finds deep nesting before `JSON.parse` builds it. */
const isTooDeep = (text: string): boolean => {
  let depth = 0;
  let quoted = false;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (quoted) {
      if (code === 92) index += 1;
      else if (code === 34) quoted = false;
    } else if (code === 34) quoted = true;
    else if (code === 91 || code === 123) depth += 1;
    else if (code === 93 || code === 125) depth -= 1;
    if (depth > depthAtMost) return true;
  }
  return false;
};

export type ReadJson =
  | { readonly value: unknown }
  | { readonly code: 'parse_error' | 'invalid_request'; readonly problem: string };

export const readJson = (text: string): ReadJson => {
  if (isTooDeep(text))
    return { code: 'invalid_request', problem: `nested deeper than ${depthAtMost} levels` };
  try {
    return { value: JSON.parse(text) };
  } catch {
    return { code: 'parse_error', problem: 'the body is not JSON' };
  }
};
