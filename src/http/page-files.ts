import type { FastifyInstance } from 'fastify';
import { errorBody } from './error-table.ts';
import { answerHeaders } from './gate.ts';

export interface PageFile {
  readonly type: string;
  readonly body: Buffer;
}

/** By name: `index.html`, and the names in `assets`, which hold a hash of what is in the file. */
export type PageFiles = ReadonlyMap<string, PageFile>;

export const pageHeaders = {
  ...answerHeaders,
  'content-security-policy': [
    "default-src 'self'",
    "object-src 'none'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; '),
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
  'x-frame-options': 'DENY',
} as const;

/** The files are in memory, so no request reads a path. */
export const addPageFiles = (app: FastifyInstance, files: PageFiles): void => {
  app.get('/', async (_request, reply) => {
    const page = files.get('index.html');
    if (page === undefined)
      return reply
        .code(404)
        .send(errorBody('not_found', 'the web page is not built; run: npm run build'));
    return reply.headers(pageHeaders).type(page.type).send(page.body);
  });
  app.get<{ Params: { name: string } }>('/assets/:name', async (request, reply) => {
    const file = files.get(`assets/${request.params.name}`);
    if (file === undefined) return reply.code(404).send(errorBody('not_found', 'no such file'));
    return reply
      .headers(pageHeaders)
      .header('cache-control', 'public, max-age=31536000, immutable')
      .type(file.type)
      .send(file.body);
  });
};
