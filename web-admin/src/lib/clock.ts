/** The clock of the node as far as the page knows it, so that ages are right on a computer whose clock is not. */
let ahead = 0;

/** The node says that it is `ms` now. Half a second more or less is the way here. */
export function setServerClock(ms: number): void {
  const found = Date.now() - ms;
  ahead = Math.abs(found) > 1_500 ? found : 0;
}

/** Milliseconds of the Unix epoch by the node's clock. */
export const serverNow = (browserNow: number = Date.now()): number => browserNow - ahead;
