/** The server's clock: ages and countdowns must not depend on how well the viewer's own is set. */
let ahead = 0;

export function learnServerTime(serverTime: string, asked: number): void {
  const answered = Date.now();
  const found = Date.parse(serverTime) - (asked + answered) / 2;
  // Less than a second may be the network's doing.
  ahead = Math.abs(found) < 1000 ? 0 : found;
}

export function now(): number {
  return Date.now() + ahead;
}
