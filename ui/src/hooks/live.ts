/** The live stream: opened while somebody looks, closed while nobody does. Knows nothing of React. */
import type { QueryClient } from "@tanstack/react-query";
import { client } from "@/api/client";
import { parse, plain } from "@/api/exact";
import type { Stats } from "@/api/model";
import { addressOf } from "@/api/place";
import { statsQuery } from "@/api/queries";
import { OpenStreams } from "@/hooks/open-streams";
import { changed, type StatsChanges } from "@/hooks/stats-changes";

export type LiveState = "live" | "connecting" | "paused" | "hidden" | "polling";

const READ_AGAIN_MS = 1000;
const RECONNECT_MS = 10_000;
const POLL_MS = 5000;
const HEARTBEATS_MS = 5000;
const MOST_STREAMS = 4;
const ANSWERS_MS = 100;

export class Live {
  state: LiveState = "connecting";
  private paused = false;
  private stream: EventSource | null = null;
  private readonly streams = new OpenStreams();
  private opening: ReturnType<typeof setTimeout> | undefined;
  private interrupted = false;
  private lastRead = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private reconnect: ReturnType<typeof setTimeout> | undefined;
  private poll: ReturnType<typeof setInterval> | undefined;
  private heartbeats: ReturnType<typeof setInterval> | undefined;
  private readonly listeners = new Set<() => void>();

  constructor(private readonly queries: QueryClient) {}

  start(): () => void {
    document.addEventListener("visibilitychange", this.adjust);
    this.adjust();
    return () => {
      document.removeEventListener("visibilitychange", this.adjust);
      this.close();
    };
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly toggle = (): void => {
    this.paused = !this.paused;
    this.adjust();
    if (!this.paused) this.refresh();
  };

  /** Everything that is shown, now. */
  readonly refresh = (): void => {
    this.lastRead = Date.now();
    void this.queries.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== "session" });
  };

  private readonly adjust = (): void => {
    if (this.paused || document.hidden) {
      this.close();
      this.become(this.paused ? "paused" : "hidden");
    } else if (!this.stream && this.opening === undefined) {
      const returned = this.state === "hidden";
      this.open();
      if (returned) this.refresh();
    }
  };

  /** A window beyond those that may have a stream reads now and then, until one of them is closed. */
  private open(): void {
    if (this.state !== "polling") this.become("connecting");
    this.streams.ask();
    this.opening = setTimeout(() => {
      this.opening = undefined;
      if (this.streams.others < MOST_STREAMS) this.connect();
      else this.refused();
    }, ANSWERS_MS);
  }

  private connect(): void {
    this.streams.held = true;
    const stream = new EventSource(addressOf("api/events"));
    this.stream = stream;
    this.heartbeats = setInterval(this.beat, HEARTBEATS_MS);
    stream.addEventListener("open", () => {
      clearInterval(this.poll);
      this.become("live");
      if (this.interrupted) this.refresh();
      this.interrupted = false;
    });
    stream.addEventListener("stats", (event) => {
      this.queries.setQueryData(statsQuery.queryKey, plain(parse(event.data)) as Stats);
      this.moved();
    });
    stream.addEventListener("changes", (event) => {
      const changes = plain(parse(event.data)) as StatsChanges;
      this.queries.setQueryData(statsQuery.queryKey, (had) => had && changed(had, changes));
      this.moved();
    });
    stream.addEventListener("controls", () => {
      void this.queries.invalidateQueries({ queryKey: ["controls"] });
      void this.queries.invalidateQueries({ queryKey: ["types"] });
      void this.queries.invalidateQueries({ queryKey: ["task"] }); // what it waits for
    });
    stream.addEventListener("problem", () => this.moved());
    stream.addEventListener("error", () => {
      this.interrupted = true;
      if (stream.readyState === EventSource.CLOSED) this.refused();
      else this.become("connecting"); // the browser tries again by itself
    });
  }

  /** There are enough streams, or the server wants us to sign in again; asking for the session finds out which. */
  private refused(): void {
    this.close();
    this.become("polling");
    void client.GET("/api/session").catch(() => {});
    this.poll = setInterval(() => {
      this.moved();
      this.beat();
    }, POLL_MS);
    this.reconnect = setTimeout(() => {
      this.close();
      this.adjust();
    }, RECONNECT_MS);
  }

  private close(): void {
    this.stream?.close();
    this.stream = null;
    this.streams.held = false;
    clearTimeout(this.opening);
    this.opening = undefined;
    clearTimeout(this.timer);
    clearTimeout(this.reconnect);
    clearInterval(this.poll);
    clearInterval(this.heartbeats);
    this.timer = undefined;
  }

  /** However many events come, what is shown is read again once a second at most. */
  private readonly moved = (): void => {
    if (this.timer !== undefined) return;
    const wait = Math.max(0, this.lastRead + READ_AGAIN_MS - Date.now());
    this.timer = setTimeout(() => {
      this.timer = undefined;
      this.lastRead = Date.now();
      void this.queries.invalidateQueries(
        { predicate: ({ meta, queryKey }) => meta?.["live"] === true && queryKey[0] !== "stats" },
        { cancelRefetch: false }, // a slow read is let finish
      );
    }, wait);
  };

  /** Heartbeats and the time that passes move no figures, nor do changes that cancel out, such as one task deleted and
   * another done within a second: no event tells of them. */
  private readonly beat = (): void => {
    for (const subject of ["workers", "types", "series", "task", "tasks"]) {
      void this.queries.invalidateQueries({ queryKey: [subject] }, { cancelRefetch: false });
    }
  };

  private become(state: LiveState): void {
    if (this.state === state) return;
    this.state = state;
    for (const listener of this.listeners) listener();
  }
}
