import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { configFolder, type LoadedConfig } from './config.ts';
import { homeOf } from './places/home.ts';

/** The paths in a configuration where nothing is, in sentences. */
export const missingPaths = (loaded: LoadedConfig): readonly string[] => {
  const { api, tracker, sandbox } = loaded.config;
  const named: readonly (readonly [string, string | undefined])[] = [
    ['api.script', api.script],
    ['api.codex_path', api.codex_path],
    ['api.claude_path', api.claude_path],
    ['tracker.bd_path', tracker.bd_path],
    ...sandbox.read_paths.map((path) => ['sandbox.read_paths', path] as const),
    ...sandbox.home_paths.map(
      (path) =>
        ['sandbox.home_paths', join(homeOf(process.env), path.replace(/^~\//, ''))] as const,
    ),
  ];
  return named.flatMap(([key, path]) => {
    const place = path === undefined ? null : resolve(configFolder(loaded), path);
    return place === null || existsSync(place) ? [] : [`${key}: ${place} does not exist`];
  });
};
