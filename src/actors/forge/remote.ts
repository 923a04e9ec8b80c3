const isCloud = ({ hostname }: URL): boolean =>
  /^api\.(github\.com|[\w-]+\.ghe\.com)$/.test(hostname);

/** Where people see what an API answers: `github.com` for https://api.github.com */
export const hostOfForge = (apiUrl: string): string => {
  const api = new URL(apiUrl);
  return isCloud(api) ? api.hostname.slice('api.'.length) : api.hostname;
};

/**
 * True when a remote is on the server of an API: the token of the API may go there alone. github.com and
 * its private clouds have their API on `api.<host>`; an Enterprise server on its own host.
 */
export const isAtForge = (remote: string, apiUrl: string): boolean => {
  if (!URL.canParse(remote)) return false;
  const [{ origin, protocol }, api] = [new URL(remote), new URL(apiUrl)];
  const home = isCloud(api) ? `https://${api.host.slice('api.'.length)}` : api.origin;
  return origin === home && /^https?:$/.test(protocol);
};
