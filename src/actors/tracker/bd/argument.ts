const argumentLengthAtMost = 8_000;
/** Words of people as an argument: the kernel takes no NUL and no more than 128 KiB of it. */
export const asArgument = (text: string): string => text.slice(0, argumentLengthAtMost).replaceAll('\0', '\uFFFD');
