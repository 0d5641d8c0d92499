/** How many other windows of this browser hold a live stream open. Over HTTP/1.1 a browser has six connections to a
 * server for all of its windows together: if streams took them all, nothing else could be loaded. */
export class OpenStreams {
  /** Whether this window holds one. */
  held = false;
  /** How many have answered since the last question. */
  others = 0;
  private readonly channel = new BroadcastChannel("tasklib.streams");

  constructor() {
    this.channel.addEventListener("message", ({ data }) => {
      if (data === "here") this.others += 1;
      else if (this.held) this.channel.postMessage("here");
    });
  }

  /** Answers come within milliseconds. */
  ask(): void {
    this.others = 0;
    this.channel.postMessage("who?");
  }
}
