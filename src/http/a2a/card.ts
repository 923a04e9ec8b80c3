import { createHash } from 'node:crypto';
import type { Settings } from '../../actors/engine/settings.ts';
import { type Role, roles } from '../../machines/task.ts';
import { inputModes, outputModes } from './message-text.ts';
import { extensionUri } from './protocol.ts';
import { cardMembers03 } from './version-03.ts';

export interface CardFacts {
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
export const agentCard = (facts: CardFacts, isExtended = false) => ({
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

export const etagOf = (text: string): string =>
  `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"`;
