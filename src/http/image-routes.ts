import type { FastifyError, FastifyInstance } from 'fastify';
import type { TaskQueries } from '../actors/engine/queries/task-queries.ts';
import { imageBytesAtMost, imageProblem, imageTypeOf, imageTypes } from '../actors/files/image.ts';
import { errorBody, requestErrors } from './error-table.ts';
import type { OnRequest } from './rpc-routes.ts';

const digestPattern = /^[0-9a-f]{64}$/;

const refusals: Readonly<Record<string, readonly [keyof typeof requestErrors, string]>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: [
    'unsupported_media_type',
    `send Content-Type: ${imageTypes.join(', ')}`,
  ],
  FST_ERR_CTP_BODY_TOO_LARGE: [
    'payload_too_large',
    `an image holds at most ${imageBytesAtMost} bytes`,
  ],
};

/** Images for tasks that are about to be made, and those of tasks. */
export const addImageRoutes = (
  app: FastifyInstance,
  service: Pick<TaskQueries, 'upload' | 'image'>,
  onRequest: OnRequest,
): void => {
  // Other routes take no image, and these nothing else.
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser([...imageTypes], { parseAs: 'buffer' }, (_request, body, done) =>
      done(null, body),
    );
    const refuse = scope.errorHandler;
    scope.setErrorHandler((error: FastifyError, request, reply) => {
      const [name, message] = refusals[error.code] ?? [];
      return name === undefined || message === undefined
        ? refuse(error, request, reply)
        : reply.code(requestErrors[name]).send(errorBody(name, message));
    });
    scope.post('/images', { bodyLimit: imageBytesAtMost, onRequest }, async (request, reply) => {
      const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
      const problem = imageProblem(body);
      const given = request.headers['content-type']?.split(';')[0]?.trim().toLowerCase();
      const type = imageTypeOf(body);
      if (problem !== null || given !== type)
        return reply
          .code(requestErrors.unsupported_media_type)
          .send(
            errorBody(
              'unsupported_media_type',
              problem === null ? `the body is ${type}, not ${given}` : `the body ${problem}`,
            ),
          );
      const { digest, mediaType, bytes } = await service.upload(body);
      return { digest, media_type: mediaType, bytes };
    });
    scope.get<{ Params: { task_id: string; digest: string } }>(
      '/images/:task_id/:digest',
      { onRequest },
      async ({ params: { task_id, digest } }, reply) => {
        if (!digestPattern.test(digest))
          return reply
            .code(requestErrors.not_found)
            .send(errorBody('not_found', 'an image is named by its digest'));
        const image = await service.image(task_id, digest);
        return reply.type(image.mediaType).send(Buffer.from(image.data, 'base64'));
      },
    );
  });
};
