// One import for all of it: nothing of it is loaded where no server is configured.
import { createPins, createVolatilePins, type Pins } from './pins.ts';

export { openRelay } from './relay.ts';
export { openServers } from './servers.ts';
export { placeFor } from './transports.ts';

/** Null: they are forgotten with this process. */
export const openPins = (file: string | null): Pins =>
  file === null ? createVolatilePins() : createPins(file);
