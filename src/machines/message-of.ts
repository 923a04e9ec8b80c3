/** An error of an invoked actor that was saved is an object with a message, not an `Error`. */
export const messageOf = (error: unknown): string =>
  typeof error === 'object' && error !== null && 'message' in error
    ? String(error.message)
    : String(error);
