import type { LanguageModelV3 } from '@ai-sdk/provider';
import type { ProviderOptions } from './openai/openai-call.ts';
import { WireError } from './openai/openai-faults.ts';

export type SdkType = 'anthropic' | 'google' | 'bedrock' | 'vertex';

/** Credentials of a cloud instead of a key: they sign requests to AWS, and get tokens of Google. */
export type CloudAccess =
  | {
      readonly cloud: 'aws';
      readonly region: string;
      readonly accessKeyId: string;
      readonly secretAccessKey: string;
      readonly sessionToken: string | undefined;
    }
  | { readonly cloud: 'google'; readonly credentialsFile: string };

type Fetch = typeof globalThis.fetch;

export interface SdkSettings extends Pick<ProviderOptions, 'apiKey' | 'baseURL'> {
  readonly headers: Readonly<Record<string, string>>;
  /** With it `apiKey` counts only when it is not empty. */
  readonly access?: CloudAccess;
  /** For tokens. */
  readonly send: Fetch;
}

/** Opens a model of the provider with the fetch of one call. */
type OpenModel = (fetch: Fetch, model: string) => Promise<LanguageModelV3>;

const tokenMs = 15_000;

/** Lasting when Google refused the credentials or the file cannot be used. */
const tokenFailure = (error: unknown): WireError => {
  const { config, status } = { config: undefined, status: undefined, ...Object(error) };
  const isPassing = config !== undefined && !(typeof status === 'number' && status < 500);
  const why = error instanceof Error ? error.message : String(error);
  return new WireError(
    isPassing ? 'network' : 'credentials',
    `Google gave no access token for GOOGLE_APPLICATION_CREDENTIALS: ${why}`,
  );
};

/** A client of Google that keeps its token until it expires. */
const googleClient = async (credentialsFile: string, send: Fetch) => {
  const { GoogleAuth } = await import('google-auth-library');
  const fetchImplementation: Fetch = (input, init) =>
    send(input, { ...init, signal: AbortSignal.timeout(tokenMs) });
  const auth = new GoogleAuth({
    scopes: ['https://www.googleapis.com/auth/cloud-platform'],
    keyFilename: credentialsFile,
    clientOptions: { transporterOptions: { fetchImplementation } },
  });
  return auth.getClient();
};

const openVertex = ({ apiKey, baseURL, headers, access, send }: SdkSettings): OpenModel => {
  const publishers = `${baseURL.replace(/\/$/, '')}/publishers`;
  let client: ReturnType<typeof googleClient> | undefined;
  const authClient = async (file: string) => {
    client ??= googleClient(file, send);
    try {
      const ready = await client;
      await ready.getAccessToken();
      return ready;
    } catch (error) {
      client = undefined;
      throw tokenFailure(error);
    }
  };
  return async (fetch, model) => {
    const isClaude = model.startsWith('claude-');
    const own = { headers: { ...headers }, fetch, project: '', location: '' };
    if (access?.cloud !== 'google' || (apiKey !== '' && !isClaude)) {
      if (isClaude)
        throw new WireError(
          'credentials',
          'Claude on Vertex takes no API key: set GOOGLE_VERTEX_PROJECT, GOOGLE_VERTEX_LOCATION and GOOGLE_APPLICATION_CREDENTIALS',
        );
      const { createVertex } = await import('@ai-sdk/google-vertex');
      return createVertex({ ...own, apiKey, baseURL: `${publishers}/google` })(model);
    }
    const signed = {
      ...own,
      googleAuthOptions: { authClient: await authClient(access.credentialsFile) },
    };
    if (isClaude) {
      const { createVertexAnthropic } = await import('@ai-sdk/google-vertex/anthropic');
      const models = `${publishers.replace('/v1beta1/', '/v1/')}/anthropic/models`;
      return createVertexAnthropic({ ...signed, baseURL: models })(model);
    }
    const { createVertex } = await import('@ai-sdk/google-vertex');
    return createVertex({ ...signed, apiKey: '', baseURL: `${publishers}/google` })(model);
  };
};

/** Each package loads when it is first used. */
export const openSdk: Readonly<Record<SdkType, (settings: SdkSettings) => OpenModel>> = {
  anthropic:
    ({ apiKey, baseURL, headers }) =>
    async (fetch, model) =>
      (await import('@ai-sdk/anthropic')).createAnthropic({
        apiKey,
        baseURL,
        headers: { ...headers },
        fetch,
      })(model),
  google:
    ({ apiKey, baseURL, headers }) =>
    async (fetch, model) =>
      (await import('@ai-sdk/google')).createGoogleGenerativeAI({
        apiKey,
        baseURL,
        headers: { ...headers },
        fetch,
      })(model),
  bedrock:
    ({ apiKey, baseURL, headers, access }) =>
    async (fetch, model) => {
      const { createAmazonBedrock } = await import('@ai-sdk/amazon-bedrock');
      const signing =
        access?.cloud === 'aws' ? { ...access, sessionToken: access.sessionToken ?? '' } : {};
      // An empty key keeps the package from looking for one in the environment.
      return createAmazonBedrock({ ...signing, apiKey, baseURL, headers: { ...headers }, fetch })(
        model,
      );
    },
  vertex: openVertex,
};
