import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, posix } from 'node:path';
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

const bundleId = 'io.github.agent-task-server.handler';
const lsregister =
  '/System/Library/Frameworks/CoreServices.framework/Frameworks/LaunchServices.framework/Support/lsregister';

const escapeXml = (text: string): string =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');

/** The app's script: the link reaches the shell as one quoted word. */
export const appleScript = ({
  node,
  script,
}: {
  readonly node: string;
  readonly script: string;
}): string => {
  const literal = (text: string): string => `quoted form of "${text.replace(/["\\]/g, '\\$&')}"`;
  return [
    'on open location theURL',
    `\tdo shell script ${literal(node)} & " " & ${literal(script)} & " open-url -- " & quoted form of theURL`,
    'end open location',
  ].join('\n');
};

/**
 * The app's Info.plist. It records the compiled script, so that an update differs from a
 * repetition.
 */
export const infoPlist = (source: string): string => `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>CFBundleIdentifier</key><string>${bundleId}</string>
  <key>CFBundleName</key><string>Agent Task Server</string>
  <key>CFBundleExecutable</key><string>applet</string>
  <key>CFBundleIconFile</key><string>applet</string>
  <key>CFBundlePackageType</key><string>APPL</string>
  <key>CFBundleInfoDictionaryVersion</key><string>6.0</string>
  <key>LSUIElement</key><true/>
  <key>CFBundleURLTypes</key>
  <array>
    <dict>
      <key>CFBundleURLName</key><string>Agent Task Server</string>
      <key>CFBundleURLSchemes</key><array><string>agent</string></array>
    </dict>
  </array>
  <key>AgentTaskServerSource</key><string>${escapeXml(source)}</string>
</dict>
</plist>
`;

const javaScript = (...statements: readonly string[]): readonly string[] => [
  '/usr/bin/osascript',
  '-l',
  'JavaScript',
  '-e',
  statements.join('; '),
];

/**
 * The app bundle in ~/Applications: its files, and the commands that build, announce and remove it.
 * Not yet tested.
 */
export const macosApp = (options: {
  readonly home: string;
  readonly node: string;
  readonly script: string;
}) => {
  const path = posix.join(options.home, 'Applications', 'Agent Task Server.app');
  const source = appleScript(options);
  return {
    path,
    bundleId,
    /** Written after compiling, which writes its own plist. */
    files: [{ path: posix.join(path, 'Contents', 'Info.plist'), content: infoPlist(source) }],
    compile: [
      '/usr/bin/osacompile',
      '-o',
      path,
      ...source.split('\n').flatMap((line) => ['-e', line]),
    ],
    sign: ['/usr/bin/codesign', '--force', '--sign', '-', path],
    announce: [lsregister, '-f', path],
    forget: [lsregister, '-u', path],
    ask: javaScript(
      "ObjC.import('AppKit')",
      "const app = $.NSWorkspace.sharedWorkspace.URLForApplicationToOpenURL($.NSURL.URLWithString('agent://task/a-1'))",
      "app.isNil() ? '' : app.path.js",
    ),
    prefer: javaScript(
      "ObjC.import('CoreServices')",
      `$.LSSetDefaultHandlerForURLScheme($('agent'), $('${bundleId}'))`,
    ),
  } as const;
};

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
