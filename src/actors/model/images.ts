import type { Failure } from '../../machines/task.ts';
import type { ImageData, ImageRef } from '../files/image.ts';
import type { ModelMessage, ModelRequest } from './port.ts';

/** The images of a message that the request has the bytes of. */
export const imagesOf = (
  message: ModelMessage,
  images: ModelRequest['images'],
): readonly ImageData[] =>
  imageRefsOf(message).flatMap(({ digest, mediaType }) => {
    const data = images?.get(digest);
    return data === undefined ? [] : [{ digest, mediaType, data }];
  });

export const imageRefsOf = (message: ModelMessage): readonly ImageRef[] =>
  (message.role === 'assistant' ? undefined : message.images) ?? [];

export const dataUrlOf = ({ mediaType, data }: ImageData): string =>
  `data:${mediaType};base64,${data}`;

const notShown =
  '[Here is an image that could not be shown to you. Say in your results what you could not see.]';

/** For a model that takes no images. */
export const withoutImages = (messages: readonly ModelMessage[]): readonly ModelMessage[] =>
  messages.map((message) => {
    const count = imageRefsOf(message).length;
    if (message.role === 'assistant' || count === 0) return message;
    const { images: _, ...rest } = message;
    return { ...rest, text: [message.text, ...Array(count).fill(notShown)].join('\n\n') };
  });

const aboutImages =
  /\bimages?\b|\bimage_url\b|\bvision\b|multi-?modal|mmproj|content must be a string/i;
const notAboutRequest: ReadonlySet<unknown> = new Set([401, 402, 403, 408, 409, 429]);

export const refusesImages = ({ message, facts }: Failure): boolean =>
  (facts['kind'] === 'http' || facts['kind'] === 'stream_error') &&
  !notAboutRequest.has(facts['status']) &&
  aboutImages.test(message);
