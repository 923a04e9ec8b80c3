import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { errorBody, requestErrors } from './error-table.ts';

export const notAllowedText = (method: string, allowed: readonly string[]): string =>
  `${method} does nothing at this address; use ${allowed.join(' or ')}`;

/** `/stream/:task_id` has `/stream/bd-a1`. */
const isOf = (pattern: string, path: string): boolean => {
  const [wanted, given] = [pattern.split('/'), path.split('/')];
  return (
    wanted.length === given.length &&
    wanted.every((each, at) => (each.startsWith(':') ? given[at] !== '' : each === given[at]))
  );
};

/** Answers a request that has no route: 405 where its address takes another method, else 404. */
export const answerNoRoute = (app: FastifyInstance): void => {
  const routes: { readonly url: string; readonly methods: readonly string[] }[] = [];
  app.addHook('onRoute', ({ url, method }) => void routes.push({ url, methods: [method].flat() }));
  app.setNotFoundHandler((request: FastifyRequest, reply: FastifyReply) => {
    const { method, url } = request;
    const [path = ''] = url.split('?', 1);
    const allowed = routes.filter((route) => isOf(route.url, path)).flatMap((each) => each.methods);
    if (allowed.length === 0)
      return reply
        .code(requestErrors.not_found)
        .send(errorBody('not_found', `no route ${method} ${url.slice(0, 200)}`));
    const names = [...new Set(allowed)].sort();
    return reply
      .code(requestErrors.method_not_allowed)
      .header('allow', names.join(', '))
      .send(errorBody('method_not_allowed', notAllowedText(method, names)));
  });
};
