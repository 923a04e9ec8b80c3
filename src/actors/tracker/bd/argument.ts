const argumentLengthAtMost = 8_000;
/** The kernel takes no NUL in an argument, and at most 128 KiB. */
export const asArgument = (text: string): string =>
  text.slice(0, argumentLengthAtMost).replaceAll('\0', '\uFFFD');
