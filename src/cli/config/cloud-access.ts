import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { CloudAccess, SdkType } from '../../actors/model/ai-sdk-packages.ts';

/** Variables that sign requests to AWS; a profile of `~/.aws` is not read. */
export const signingVariables = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN'];

const regionIn = (address: string | null, env: NodeJS.ProcessEnv): string | null =>
  /^https:\/\/bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\./.exec(address ?? '')?.[1] ??
  (env['AWS_REGION'] || env['AWS_DEFAULT_REGION'] || null);

export const bedrockIn = (region: string): string =>
  `https://bedrock-runtime.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`;

const hostOf = (location: string): string => {
  if (location === 'global') return 'aiplatform.googleapis.com';
  return ['eu', 'us'].includes(location)
    ? `aiplatform.${location}.rep.googleapis.com`
    : `${location}-aiplatform.googleapis.com`;
};

const projectIn = (env: NodeJS.ProcessEnv) => ({
  project: env['GOOGLE_VERTEX_PROJECT'] || env['GOOGLE_CLOUD_PROJECT'],
  location: env['GOOGLE_VERTEX_LOCATION'] || env['GOOGLE_CLOUD_LOCATION'],
});

/** The address of a cloud for this user; undefined where the environment does not say. */
export const cloudAddress = (type: string, env: NodeJS.ProcessEnv): string | undefined => {
  const region = type === 'bedrock' ? regionIn(null, env) : null;
  if (region !== null) return bedrockIn(region);
  const { project, location } = projectIn(env);
  if (type !== 'vertex' || !project || !location) return undefined;
  return `https://${hostOf(location)}/v1beta1/projects/${project}/locations/${location}`;
};

/** The file of `gcloud auth application-default login`, where no variable names a file. */
const googleFile = (env: NodeJS.ProcessEnv): string | null => {
  const named = env['GOOGLE_APPLICATION_CREDENTIALS'];
  if (named) return named;
  const folder = env['CLOUDSDK_CONFIG'] || join(env['HOME'] ?? '', '.config', 'gcloud');
  const file = join(folder, 'application_default_credentials.json');
  return existsSync(file) ? file : null;
};

/** Null where the environment has no credentials of the cloud, or not all of them. */
export const cloudAccess = (
  type: 'openai' | SdkType,
  address: string | null,
  env: NodeJS.ProcessEnv,
): CloudAccess | null => {
  if (type === 'bedrock') {
    const [accessKeyId, secretAccessKey, sessionToken] = signingVariables.map((name) => env[name]);
    const region = regionIn(address, env);
    return accessKeyId && secretAccessKey && region !== null
      ? { cloud: 'aws', region, accessKeyId, secretAccessKey, sessionToken }
      : null;
  }
  if (type !== 'vertex' || address === null || !address.includes('/projects/')) return null;
  const credentialsFile = googleFile(env);
  return credentialsFile === null ? null : { cloud: 'google', credentialsFile };
};

export const secretsOf = (access: CloudAccess | null): readonly string[] =>
  access?.cloud === 'aws' ? [access.secretAccessKey, access.sessionToken ?? ''] : [];
