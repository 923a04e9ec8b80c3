import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { macosApp } from './macos.ts';
import {
  alreadyRegistered,
  type HandlerEnvironment,
  mustRun,
  notRegistered,
  type Registration,
  type Removal,
  registered,
  removed,
  taken,
  updated,
} from './registration.ts';

type App = ReturnType<typeof macosApp>;

/** Null without our bundle. @throws Error when another program has that name */
const plistOf = ({ path, files: [plist], bundleId }: App): string | null => {
  if (!existsSync(path)) return null;
  const text = existsSync(plist.path) ? readFileSync(plist.path, 'utf8') : '';
  if (!text.includes(bundleId)) throw new Error(`${path} is not ours; move it away`);
  return text;
};

const buildApp = async (
  environment: HandlerEnvironment,
  { path, compile, files, sign, announce }: App,
): Promise<void> => {
  rmSync(path, { recursive: true, force: true });
  mkdirSync(dirname(path), { recursive: true });
  await mustRun(environment, compile);
  for (const file of files) writeFileSync(file.path, file.content);
  // The new plist breaks a signature by osacompile. Without the signing tools there was none.
  await environment.run(sign);
  await mustRun(environment, announce);
};

/** Builds and announces the app. @throws Error when a step fails; nothing half done stays */
export const registerOnMacos = async (environment: HandlerEnvironment): Promise<Registration> => {
  const app = macosApp(environment);
  const current = await mustRun(environment, app.ask);
  const other = current === '' || current === app.path ? null : current;
  if (other !== null && environment.force !== true) return taken(other);
  const before = plistOf(app);
  if (before === app.files[0].content && current === app.path) return alreadyRegistered;
  try {
    await buildApp(environment, app);
    if (other !== null) await mustRun(environment, app.prefer);
  } catch (error) {
    rmSync(app.path, { recursive: true, force: true });
    throw error;
  }
  return before !== null && other === null ? updated(environment.script) : registered(other);
};

/** @throws Error when the app is not ours */
export const unregisterOnMacos = async (environment: HandlerEnvironment): Promise<Removal> => {
  const app = macosApp(environment);
  if (plistOf(app) === null) return notRegistered;
  await environment.run(app.forget);
  rmSync(app.path, { recursive: true, force: true });
  return removed(app.path);
};
