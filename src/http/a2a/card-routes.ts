import { createHash } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Settings } from '../../actors/engine/attempts/settings.ts';
import type { System } from '../../actors/system.ts';
import { type Role, roles } from '../../machines/task.ts';
import { errorBody } from '../error-table.ts';
import { refuseRole, roleIn } from './dispatch.ts';
import { A2aError } from './errors.ts';
import { type A2aRules, extensionUri } from './protocol.ts';
import { inputModes, outputModes } from './send.ts';
import { cardMembers03 } from './version-03.ts';

interface CardFacts {
  readonly name: string;
  readonly version: string;
  /** Such as `http://127.0.0.1:8080`. */
  readonly base: string;
  /** The card of one role; null: of all. */
  readonly role: Role | null;
  readonly versions: readonly string[];
  readonly needsToken: boolean;
  readonly roles: Settings['roles'];
}

const skill = (
  role: Role,
  { description, tools }: Settings['roles'][Role],
  isExtended: boolean,
) => ({
  id: role,
  name: role,
  description: isExtended ? `${description} Tools: ${tools.join(', ')}.` : description,
  tags: ['software', role],
});

const cardUrl = ({ base, role }: CardFacts): string =>
  role === null ? `${base}/a2a` : `${base}/agents/${role}/a2a`;

const interfacesAt = (url: string, versions: readonly string[]) => [
  ...(versions.includes('1.0')
    ? [
        { url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
        { url: `${url}/rest`, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
      ]
    : []),
  ...(versions.includes('0.3')
    ? [{ url, protocolBinding: 'JSONRPC', protocolVersion: '0.3' }]
    : []),
];

/** The card of A2A 1.0. `isExtended`: for callers with the token. */
const agentCard = (facts: CardFacts, isExtended = false) => ({
  name: facts.role === null ? facts.name : `${facts.name} (${facts.role})`,
  description:
    'Runs role-specific coding agents on tracked tasks, in the order of their dependencies.',
  version: facts.version,
  supportedInterfaces: interfacesAt(cardUrl(facts), facts.versions),
  ...(facts.versions.includes('0.3') ? cardMembers03(cardUrl(facts), facts.needsToken) : {}),
  capabilities: {
    streaming: true,
    pushNotifications: true,
    extendedAgentCard: facts.needsToken,
    extensions: [
      {
        uri: extensionUri,
        description:
          'Role, dependencies, attempt, phase and usage of a task; dependsOn, role and options of a message',
        required: false,
      },
    ],
  },
  ...(facts.needsToken
    ? {
        securitySchemes: {
          token: {
            ...(facts.versions.includes('0.3') ? { type: 'http', scheme: 'bearer' } : {}),
            httpAuthSecurityScheme: {
              scheme: 'Bearer',
              description: 'The token of the server: agent token prints it',
            },
          },
        },
        securityRequirements: [{ schemes: { token: { list: [] } } }],
      }
    : {}),
  defaultInputModes: inputModes,
  defaultOutputModes: outputModes,
  skills: roles
    .filter((role) => facts.role === null || role === facts.role)
    .map((role) => skill(role, facts.roles[role], isExtended)),
});

const etagOf = (text: string): string =>
  `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"`;

interface CardOptions {
  readonly name: string;
  readonly version: string;
  readonly token: () => string | null;
  readonly a2aRules: () => A2aRules;
  readonly system: Pick<System, 'settings'>;
}

const maxAgeSeconds = 60;

const cardFacts = (
  { name, version, token, system, a2aRules }: CardOptions,
  request: FastifyRequest,
  role: Role | null,
): CardFacts => {
  const { versions, publicUrl } = a2aRules();
  return {
    name,
    version,
    role,
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
