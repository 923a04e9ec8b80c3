import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { System } from '../../actors/system.ts';
import type { Role } from '../../machines/task.ts';
import { errorBody } from '../error-table.ts';
import { agentCard, type CardFacts, etagOf } from './card.ts';
import { refuseRole, roleIn } from './dispatch.ts';
import { A2aError } from './errors.ts';
import type { A2aRules } from './versions.ts';

export interface CardOptions {
  readonly name: string;
  readonly version: string;
  readonly token: () => string | null;
  readonly a2aRules: () => A2aRules;
  readonly system: Pick<System, 'settings'>;
}

const maxAgeSeconds = 60;

export const cardFacts = (
  { name, version, token, system, a2aRules }: CardOptions,
  request: FastifyRequest,
  role: Role | null,
): CardFacts => {
  const { versions, publicUrl } = a2aRules();
  return {
    ...{ name, version, role },
    // The gate lets only names of this server pass. Headers of a proxy can be anybody's.
    base: publicUrl ?? `http://${request.headers.host}`,
    // A client that names 1.0 gets a card without the members of 0.3, which a strict one refuses.
    versions: versions.filter(
      (each) => each === '1.0' || request.headers['a2a-version'] === undefined,
    ),
    needsToken: token() !== null,
    roles: system.settings().roles,
  };
};

/** @throws EXTENDED_AGENT_CARD_NOT_CONFIGURED, UNSUPPORTED_OPERATION */
export const extendedCardOf =
  (options: CardOptions) =>
  (request: FastifyRequest, role: Role | null): object => {
    if (options.token() === null)
      throw new A2aError('UNSUPPORTED_OPERATION', 'this server has no token, so one card for all');
    return agentCard(cardFacts(options, request, role), true);
  };

/** The public cards: one for all roles, and one for each. */
export const addCardRoutes = (app: FastifyInstance, options: CardOptions): void => {
  const answer = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const role = roleIn(request);
    if (role === undefined) return refuseRole(request, reply);
    const text = JSON.stringify(agentCard(cardFacts(options, request, role)));
    const etag = etagOf(text);
    reply
      .header('cache-control', `max-age=${maxAgeSeconds}`)
      .header('vary', 'Host, A2A-Version')
      .header('etag', etag);
    const known = String(request.headers['if-none-match'] ?? '')
      .split(',')
      .map((each) => each.trim());
    if (known.includes(etag) || known.includes('*')) return reply.code(304).send();
    return reply.type('application/json; charset=utf-8').send(text);
  };
  app.get('/.well-known/agent-card.json', answer);
  app.get('/agents/:role/.well-known/agent-card.json', answer);
  // Where clients of 0.3 may look.
  app.get('/.well-known/agent.json', (request, reply) =>
    options.a2aRules().versions.includes('0.3')
      ? answer(request, reply)
      : reply.code(404).send(errorBody('not_found', 'a2a.versions does not have 0.3')),
  );
};
