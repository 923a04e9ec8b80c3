import { createHash } from 'node:crypto';
import { z } from 'zod';
import { mebibytesText } from '../../machines/bytes.ts';

export const imageTypes = ['image/png', 'image/jpeg', 'image/webp'] as const;
export type ImageType = (typeof imageTypes)[number];

/** Of one image. */
export const imageBytesAtMost = 5 * 1024 * 1024;
/** Of a task, and of what an attempt reads. */
export const imagesAtMost = 8;
/** Of all of them together: providers limit the size of a request. */
export const allImageBytesAtMost = 10 * 1024 * 1024;

/** An image without its bytes. */
export interface ImageRef {
  /** SHA-256 of its bytes, hexadecimal. */
  readonly digest: string;
  readonly mediaType: ImageType;
}

export const imageRefSchema = z.object({ digest: z.string(), mediaType: z.enum(imageTypes) });

export interface ImageFacts extends ImageRef {
  /** Its file as the person calls it; may be empty. */
  readonly name: string;
  readonly bytes: number;
}

/** The bytes are base64. */
export interface ImageData extends ImageRef {
  readonly data: string;
}

const pngStart = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const jpegStart = Buffer.from([0xff, 0xd8, 0xff]);

/** By its first bytes, whatever the file is called; null for anything else. */
export const imageTypeOf = (bytes: Buffer): ImageType | null => {
  if (bytes.subarray(0, 8).equals(pngStart)) return 'image/png';
  if (bytes.subarray(0, 3).equals(jpegStart)) return 'image/jpeg';
  const isWebp =
    bytes.toString('latin1', 0, 4) === 'RIFF' && bytes.toString('latin1', 8, 12) === 'WEBP';
  return isWebp ? 'image/webp' : null;
};

/** Why these bytes cannot be shown to a model; null: they can. */
export const imageProblem = (bytes: Buffer): string | null => {
  if (imageTypeOf(bytes) === null) return 'is no PNG, JPEG or WebP image';
  return bytes.length > imageBytesAtMost
    ? `has ${mebibytesText(bytes.length)}, and an image may have ${mebibytesText(imageBytesAtMost)}`
    : null;
};

export const digestOf = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
